#include "bench/measure.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"

namespace bev {

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
  std::vector<double> times;
  const double start = seconds_now();
  while (seconds_now() - start < seconds || static_cast<int64_t>(times.size()) < min_runs) {
    const double begin = seconds_now();
    body();
    times.push_back(seconds_now() - begin);
  }
  return summarize(std::move(times));
}

}  // namespace bev
