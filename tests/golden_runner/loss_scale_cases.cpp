// The adapting loss scale as Megatron-LM's DynamicGradScaler moved it, on every device.
#include <limits>
#include <string>
#include <vector>

#include "base/json.h"
#include "device/memory.h"
#include "golden_runner/cases.h"
#include "ops/make_device.h"
#include "ops/update.h"

namespace bev::golden {

namespace {

struct Course {
  std::vector<double> scale, growth, hysteresis;
};

Course follow(Device& device, const LossScaling& scaling, const std::string& overflows) {
  constexpr int64_t kUpdates = int64_t{kUpdateStates} + int64_t{kUpdateDecisions};
  constexpr int64_t kAll = kUpdates + 3;
  const Buffer buffer(device, kAll * sizeof(double), "golden");
  const auto at = [&](int64_t begin, int64_t count) {
    return tensor_over(buffer.data() + static_cast<size_t>(begin) * sizeof(double), DType::f64,
                       {count});
  };
  const Tensor state = at(0, kUpdateStates), decision = at(kUpdateStates, kUpdateDecisions);
  const Tensor norm = at(kUpdates, 1), loss = at(kAll - 2, 2);
  std::vector<double> host(kUpdateStates);
  reset_update_state(scaling, host.data());
  device.upload(host.data(), state.data, bytes_of(state));
  Arena none(device, 0, "none");
  Exec ex{device, device.compute_stream(), none, none, none};
  Course course;
  for (const char overflow : overflows) {
    const double value = overflow == '1' ? std::numeric_limits<double>::infinity() : 1.0;
    device.upload(&value, norm.data, sizeof value);
    ops::decide_update(ex, {.norm_squared = norm,
                            .loss = loss,
                            .rule = {.scaling = scaling},
                            .state = state,
                            .decision = decision});
    device.download(state.data, host.data(), bytes_of(state));
    course.scale.push_back(host[kLossScale]);
    course.growth.push_back(host[kStepsWithoutOverflow]);
    course.hysteresis.push_back(host[kHysteresisLeft]);
  }
  return course;
}

}  // namespace

void run_loss_scale(const std::filesystem::path& file, const std::string& name, Report& report) {
  const Json all = read_json(file);
  for (const DeviceKind kind : {DeviceKind::Reference, DeviceKind::Cpu, DeviceKind::Cuda}) {
    const std::string device_name(name_of_choice(kind));
    if (kind == DeviceKind::Cuda && !why_no_cuda().empty()) {
      report.skip(name + " on cuda", why_no_cuda());
      continue;
    }
    const std::unique_ptr<Device> device = make_device(kind, 1);
    for (size_t i = 0; i < all.size(); ++i) {
      const Json& entry = all.at(i);
      const Json& args = entry.at("args");
      const LossScaling scaling{.initial = args.at("initial_scale"),
                                .minimum = args.at("min_scale"),
                                .growth = args.at("growth_factor"),
                                .backoff = args.at("backoff_factor"),
                                .adapts = true,
                                .window = args.at("growth_interval"),
                                .hysteresis = args.at("hysteresis")};
      const Course course = follow(*device, scaling, entry.at("found_inf").get<std::string>());
      const bool equal =
          course.scale == entry.at("scale").get<std::vector<double>>() &&
          course.growth == entry.at("growth_tracker").get<std::vector<double>>() &&
          course.hysteresis == entry.at("hysteresis_tracker").get<std::vector<double>>();
      report.check(name + "/" + std::to_string(i), device_name.c_str(), equal ? 0.0 : 1.0, 0.0);
    }
  }
}

}  // namespace bev::golden
