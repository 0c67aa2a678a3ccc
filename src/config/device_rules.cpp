// Rules about where and how it runs.
#include "base/format.h"
#include "config/rule.h"

namespace bev {

namespace {

using Found = std::optional<Problem>;

Found no_cuda(const Facts& f) {
  if (f.config.device.kind != DeviceKind::Cuda) return {};
  return Problem{.what = "this build has no CUDA",
                 .where = f.where({"device.kind"}),
                 .why = "it was compiled for the reference and cpu devices",
                 .legal = "device.kind cpu or reference"};
}

Found null_is_no_choice(const Facts& f) {
  if (f.config.device.kind != DeviceKind::Null) return {};
  return Problem{.what = "the null device runs nothing",
                 .where = f.where({"device.kind"}),
                 .why = "`bevatron plan` imitates the device that is named here without running it",
                 .legal = "device.kind cpu or reference; `bevatron plan` for a plan"};
}

Found precision_of_device(const Facts& f) {
  const DeviceConfig& d = f.config.device;
  const bool f64 = d.precision == Precision::F64;
  const bool fits = d.precision == Precision::Auto || d.kind == DeviceKind::Cuda ||
                    d.kind == DeviceKind::Null || (d.kind == DeviceKind::Reference) == f64;
  if (fits) return {};
  return Problem{.what = format("the {} device has no precision {}", name_of_choice(d.kind),
                                name_of_choice(d.precision)),
                 .where = f.where({"device.precision", "device.kind"}),
                 .why = d.kind == DeviceKind::Reference
                            ? "the reference device computes in f64 only"
                            : "the cpu device stores f32 or bf16; f64 is the reference device's",
                 .legal = d.kind == DeviceKind::Reference
                              ? "precision f64 or auto; or device.kind cpu"
                              : "precision f32, bf16 or auto; or device.kind reference"};
}

Found one_rank(const Facts& f, std::string_view path, int64_t ranks) {
  if (ranks == 1) return {};
  const auto origin = f.origins.find(path);
  const bool flag = origin != f.origins.end() && origin->second.kind == OriginKind::Flag;
  return Problem{.what = format("{} {}: only 1 works in this version",
                                flag ? origin->second.text : std::string(path), ranks),
                 .where = f.where({path}),
                 .why = "this version runs on one rank",
                 .legal = "1, or left out"};
}

Found one_tensor_rank(const Facts& f) {
  return one_rank(f, "parallel.tensor", f.config.parallel.tensor);
}

Found one_pipeline_rank(const Facts& f) {
  return one_rank(f, "parallel.pipeline", f.config.parallel.pipeline);
}

Found one_context_rank(const Facts& f) {
  return one_rank(f, "parallel.context", f.config.parallel.context);
}

Found recompute_within_model(const Facts& f) {
  const int64_t layers = f.config.recompute.layers, all = f.config.model.layers;
  if (all <= 0 || layers <= all) return {};
  return Problem{
      .what = format("{} layers are to be recomputed, but the model has {}", layers, all),
      .where = f.where({"recompute.layers", "model.layers"}),
      .why = "recompute.layers counts blocks from the first",
      .legal = format("1 to {}, or 0 for all", all)};
}

}  // namespace

std::vector<Rule> device_rules() {
  return {
      {{"device.kind"}, no_cuda},
      {{"device.kind"}, null_is_no_choice},
      {{"device.kind", "device.precision"}, precision_of_device},
      {{"parallel.tensor"}, one_tensor_rank},
      {{"parallel.pipeline"}, one_pipeline_rank},
      {{"parallel.context"}, one_context_rank},
      {{"recompute.layers", "model.layers"}, recompute_within_model},
  };
}

}  // namespace bev
