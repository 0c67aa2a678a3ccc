#include "config/batch_schedule.h"

#include <algorithm>

namespace bev {

int64_t BatchSchedule::at(int64_t consumed) const {
  if (is_constant() || consumed > ramp_samples_) return largest_;
  const auto increments = static_cast<double>((largest_ - start_) / increment_);
  const double samples_per_increment = static_cast<double>(ramp_samples_) / increments;
  const double done = samples_per_increment > 0
                          ? static_cast<double>(consumed) / samples_per_increment
                          : increments;
  return std::min(largest_, start_ + static_cast<int64_t>(done) * increment_);
}

int64_t BatchSchedule::steps_in(int64_t samples) const {
  if (is_constant()) return samples / largest_;
  int64_t steps = 0, consumed = 0;
  while (consumed <= ramp_samples_ && consumed <= samples) {
    consumed += at(consumed);
    ++steps;
  }
  return steps + std::max<int64_t>(0, samples - consumed) / largest_;
}

}  // namespace bev
