#include "bench/measure.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"

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

}  // namespace bev
