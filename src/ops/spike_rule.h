// Spikes of the loss and of the gradient norm: the running mean and deviation of a value, and the
// limit above which the next one is a spike.
#pragma once

#include <cmath>

#include "base/cuda_macros.h"

namespace bev {

// When a value is a spike, and what that means for the update.
struct SpikeRule {
  double deviations = 0;  // above the running mean; 0: the value is not judged
  bool rejects = false;   // the update is not applied
  bool halts = false;     // and nothing is from then on
  bool operator==(const SpikeRule&) const = default;
};

// The running values of what is watched: mean, variance, the value before. The variance is that of
// steps from one value to the next: a loss that falls quickly would else count as one that varies.
struct RunningStats {
  double *mean, *variance, *before;
};

// The smallest value that is a spike; 0 where it is too early to tell. A run of nearly equal values
// must not turn the next small step into a spike: a hundredth of the mean counts as a deviation.
BEV_HOST_DEVICE inline double spike_limit(const SpikeRule& spike, double warmup, double steps,
                                          const RunningStats& watched) {
  if (spike.deviations == 0 || steps < warmup) return 0;
  return *watched.mean + spike.deviations * std::fmax(std::sqrt(*watched.variance),
                                                      0.01 * std::fabs(*watched.mean));
}

// Takes a value into them. A spike counts with its limit: it cannot hide the next one, but a level
// that stays higher is soon no spike any more.
BEV_HOST_DEVICE inline void update_running_stats(double value, double limit, double window,
                                                 double steps, const RunningStats& watched) {
  const double weight = std::fmax(1 / (steps + 1), 1 / window);
  if (limit > 0) value = std::fmin(value, limit);
  const double step = steps > 0 ? value - *watched.before : 0;
  *watched.mean += weight * (value - *watched.mean);
  // Of two independent values the difference has twice the variance.
  *watched.variance += weight * (0.5 * step * step - *watched.variance);
  *watched.before = value;
}

}  // namespace bev
