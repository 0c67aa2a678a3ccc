// How many samples a step takes: always the same, or rising over the first part of a training.
#pragma once

#include <cstdint>
#include <vector>

namespace bev {

class BatchSchedule {
 public:
  // Constant.
  explicit BatchSchedule(int64_t batch = 1) : largest_(batch) {}

  // Megatron's ramp: from `start` in steps of `increment` to `batch`, all steps equally long, over
  // `samples` samples. REQUIRES: start <= batch, increment divides batch - start, samples >= 0.
  BatchSchedule(int64_t start, int64_t increment, int64_t samples, int64_t batch)
      : start_(start), increment_(increment), ramp_samples_(samples), largest_(batch) {}

  // The size of the step that begins after `consumed` samples.
  int64_t at(int64_t consumed) const;
  int64_t largest() const { return largest_; }
  std::vector<int64_t> sizes() const;  // that a step can have, the smallest first
  bool is_constant() const { return increment_ == 0 || start_ == largest_; }

  // Steps of a training of `samples` samples of which `consumed` are behind it. As in Megatron, the
  // steps of the ramp are counted one by one and the rest by division, so that a last partial step
  // is dropped.
  int64_t steps_in(int64_t samples, int64_t consumed = 0) const;

 private:
  int64_t start_ = 0, increment_ = 0, ramp_samples_ = 0, largest_;
};

}  // namespace bev
