#include "config/batch_schedule.h"

#include <algorithm>

namespace bev {

int64_t BatchSchedule::at(int64_t consumed) const {
  if (is_constant() || consumed > ramp_samples_) return largest_;
  const int64_t steps = (largest_ - start_) / increment_;
  const auto increments = static_cast<double>(steps);
  const double samples_per_increment = static_cast<double>(ramp_samples_) / increments;
  const double done = samples_per_increment > 0
                          ? static_cast<double>(consumed) / samples_per_increment
                          : increments;
  return std::min(largest_, start_ + static_cast<int64_t>(done) * increment_);
}

int64_t BatchSchedule::steps_in(int64_t samples, int64_t consumed) const {
  if (is_constant()) return std::max<int64_t>(0, samples - consumed) / largest_;
  const int64_t end = std::min(ramp_samples_, samples);  // of the beginnings of the ramp's steps
  int64_t steps = 0;
  while (consumed <= end) {
    // All steps of one size together: how many of them there are is found by halving.
    const int64_t batch = at(consumed);
    int64_t count = 1, most = (end - consumed) / batch + 1;
    while (count < most) {
      const int64_t middle = count + (most - count + 1) / 2;
      if (at(consumed + (middle - 1) * batch) == batch)
        count = middle;
      else
        most = middle - 1;
    }
    steps += count;
    consumed += count * batch;
  }
  return steps + std::max<int64_t>(0, samples - consumed) / largest_;
}

std::vector<int64_t> BatchSchedule::sizes() const {
  std::vector<int64_t> all;
  if (!is_constant())
    for (int64_t size = start_; size < largest_; size += increment_) all.push_back(size);
  all.push_back(largest_);
  return all;
}

}  // namespace bev
