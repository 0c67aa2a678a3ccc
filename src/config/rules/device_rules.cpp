// Rules about where and how it runs.
#include "base/format.h"
#include "config/rules/rule.h"

namespace bev {

namespace {

using Found = std::optional<Problem>;

Found null_is_no_choice(const RuleInput& f) {
  if (f.config.device.kind != DeviceKind::Null) return {};
  return Problem{.what = "the null device runs nothing",
                 .where = f.where({"device.kind"}),
                 .why = "`bevatron plan` imitates the device that is named here without running it",
                 .legal = "device.kind cpu or reference; `bevatron plan` for a plan"};
}

// The precisions a device stores values in, in words.
std::string_view precisions_of(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::Reference: return "f64";
    case DeviceKind::Cuda: return "bf16, fp16 or f32";
    default: return "f32 or bf16";
  }
}

bool has_precision(DeviceKind kind, Precision precision) {
  switch (precision) {
    case Precision::Auto: return true;
    case Precision::F64: return kind == DeviceKind::Reference;
    case Precision::F16: return kind == DeviceKind::Cuda;
    case Precision::F32:
    case Precision::Bf16: return kind != DeviceKind::Reference;
  }
  return false;
}

Found precision_of_device(const RuleInput& f) {
  const DeviceConfig& d = f.config.device;
  if (d.kind == DeviceKind::Null || has_precision(d.kind, d.precision)) return {};
  return Problem{
      .what = format("the {} device has no precision {}", name_of_choice(d.kind),
                     name_of_choice(d.precision)),
      .where = f.where({"device.precision", "device.kind"}),
      .why = format("it stores {}", precisions_of(d.kind)),
      .legal = format("precision {}, or auto; or another device.kind", precisions_of(d.kind))};
}

// Short gradients and moments exist where memory is short: beside 16-bit parameters on a GPU.
Found short_state(const RuleInput& f) {
  const OptimConfig& o = f.config.optim;
  const bool wanted = o.gradients != StatePrecision::F32 || o.first_moment != StatePrecision::F32 ||
                      o.second_moment != StatePrecision::F32;
  const DeviceConfig& d = f.config.device;
  const bool bf16 = d.precision == Precision::Bf16 || d.precision == Precision::Auto;
  if (!wanted || (d.kind == DeviceKind::Cuda && bf16)) return {};
  return Problem{.what = "bf16 gradients or moments, but not bf16 on cuda",
                 .where = f.where({"optim.gradients", "optim.first_moment", "optim.second_moment",
                                   "device.kind", "device.precision"}),
                 .why = "only the cuda device has them, and only beside bf16 parameters",
                 .legal = "f32 for all three, or device.kind cuda with precision bf16"};
}

Found short_state_of_adam(const RuleInput& f) {
  const OptimConfig& o = f.config.optim;
  if (o.kind == OptimizerKind::AdamW ||
      (o.first_moment == StatePrecision::F32 && o.second_moment == StatePrecision::F32))
    return {};
  return Problem{.what = format("bf16 moments with the optimizer {}", name_of_choice(o.kind)),
                 .where = f.where({"optim.first_moment", "optim.second_moment", "optim.kind"}),
                 .why = "only adam has them",
                 .legal = "f32 moments, or optim.kind adam"};
}

}  // namespace

std::vector<Rule> device_rules() {
  return {
      {{"device.kind"}, null_is_no_choice},
      {{"device.kind", "device.precision"}, precision_of_device},
      {{"optim.gradients", "optim.first_moment", "optim.second_moment", "device.kind",
        "device.precision"},
       short_state},
      {{"optim.first_moment", "optim.second_moment", "optim.kind"}, short_state_of_adam},
  };
}

}  // namespace bev
