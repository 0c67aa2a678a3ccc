#include "bench/measure.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/clock.h"
#include "base/integer.h"
#include "base/philox.h"
#include "device/memory.h"
#include "ops/make_device.h"
#include "tensor/dtype_dispatch.h"

namespace bev {

namespace {

// `run` returns the time it measured.
Timing measure_runs(const std::function<double()>& run, double seconds, int64_t min_runs) {
  std::vector<double> times;
  const double start = seconds_now();
  while (seconds_now() - start < seconds || static_cast<int64_t>(times.size()) < min_runs) {
    times.push_back(run());
  }
  return summarize(std::move(times));
}

}  // namespace

Timing summarize(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const auto at = [&](double fraction) {
    return times[static_cast<size_t>(
        std::lround(fraction * static_cast<double>(times.size() - 1)))];
  };
  return {.median = at(0.5),
          .low = at(0.25),
          .high = at(0.75),
          .best = times.front(),
          .runs = static_cast<int64_t>(times.size())};
}

Timing measure(const std::function<void()>& body, double seconds, int64_t min_runs) {
  body();
  return measure_runs(
      [&] {
        const double begin = seconds_now();
        body();
        return seconds_now() - begin;
      },
      seconds, min_runs);
}

Timing measure_on(Device& device, const std::function<void()>& body, double seconds,
                  int64_t min_runs) {
  if (!device.is_asynchronous()) return measure(body, seconds, min_runs);
  constexpr double kRunSeconds = 5e-3;
  constexpr double kWarmSeconds = 50e-3;  // until the clocks have risen
  constexpr int64_t kTrialCalls = 4, kMostCalls = 1000;
  const Stream stream = device.compute_stream();
  const auto seconds_per_call = [&](int64_t calls) {
    const double begin = seconds_now();
    for (int64_t i = 0; i < calls; ++i) body();
    stream.synchronize();
    return (seconds_now() - begin) / static_cast<double>(calls);
  };
  seconds_per_call(1);  // makes what is made once
  const double warm_begin = seconds_now();
  double expected = seconds_per_call(kTrialCalls);
  while (seconds_now() - warm_begin < kWarmSeconds) expected = seconds_per_call(kTrialCalls);
  const auto calls = static_cast<int64_t>(
      std::clamp(kRunSeconds / expected, 1.0, static_cast<double>(kMostCalls)));
  Timing timing = measure_runs([&] { return seconds_per_call(calls); }, seconds, min_runs);
  timing.calls = calls;
  return timing;
}

namespace {

// Enough that nothing repeats within the tiles of a kernel; no multiple of a row.
constexpr int64_t kDrawn = (int64_t{1} << 20) + 4;

// `count`: a multiple of 4.
template <class T>
std::vector<T> normals(int64_t count) {
  std::vector<T> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); i += 4) {
    const std::array<float, 4> four = normals_of(philox(1, 0, i));
    for (size_t j = 0; j < 4; ++j) values[i + j] = static_cast<T>(four[j]);
  }
  return values;
}

}  // namespace

OpRig::OpRig(Device& device, const RigSizes& sizes)
    : slab_(device, sizes.operands, "benchmark"),
      scratch_(device, sizes.scratch, "benchmark scratch"),
      none_(device, 0, "none"),
      exec_{device, device.compute_stream(), slab_, scratch_, none_, nullptr} {}

Tensor OpRig::make_varied(Shape shape, DType dtype) {
  const Tensor tensor = make(shape, dtype);
  if (tensor.data == nullptr) return tensor;
  visit_floating(dtype, "benchmark", [&]<class T>() {
    const int64_t elements = shape.elements();
    const std::vector<T> values = normals<T>(std::min(kDrawn, round_up(elements, 4)));
    for (int64_t begin = 0; begin < elements; begin += kDrawn) {
      const auto count = static_cast<size_t>(std::min(kDrawn, elements - begin));
      exec_.device.upload(values.data(), tensor.data + static_cast<size_t>(begin) * sizeof(T),
                          count * sizeof(T));
    }
  });
  return tensor;
}

RigSizes rig_sizes(const Device& device, const std::function<void(OpRig&)>& work) {
  DeviceConfig config;
  config.kind = device.kind();
  config.threads = 1;
  config.deterministic = device.policy().deterministic;
  config.tf32 = device.policy().tf32;
  const std::unique_ptr<Device> imitation = make_null_device(config);
  OpRig rig(*imitation, {});
  work(rig);
  return rig.peaks();
}

}  // namespace bev
