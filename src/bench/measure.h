// Timing that can be compared: warm-up, many runs, median and spread.
#pragma once

#include <functional>
#include <vector>

namespace bev {

struct Timing {
  double median = 0;         // seconds
  double low = 0, high = 0;  // the quartiles
  double best = 0;
  int64_t runs = 0;
};

// Calls body once to warm up, then until `seconds` have passed and at least `min_runs` were made.
Timing measure(const std::function<void()>& body, double seconds, int64_t min_runs = 3);

// The median and quartiles of given times. REQUIRES: not empty.
Timing summarize(std::vector<double> times);

}  // namespace bev
