// Counts the values of each loss before the backward pass, which scales gradients by 1 / count.
#pragma once

#include <span>
#include <vector>

#include "comm/communicator.h"
#include "config/choices.h"
#include "data/batch.h"
#include "device/memory.h"
#include "model/losses.h"

namespace bev {

// With LossAverage::Token a loss is the mean over all its values in the global batch, with
// LossAverage::MicroBatch the mean over micro-batches of their means.
class LossNormalizer {
 public:
  // `losses` must outlive this.
  LossNormalizer(Device& device, const std::vector<LossSpec>& losses, LossAverage average);

  // Factors that the model reads, and sums that it adds to.
  Losses tensors() const;

  // f64 [1]: multiplies all gradients. Absent: 1.
  void set_loss_scale(ConstTensor scale) { loss_scale_ = scale; }

  // Before a step: counts the values over the micro-batches of all ranks of the group. Each rank
  // knows its own batches only.
  void count(Exec& ex, Communicator& group, std::span<const HostBatch> batches);
  // Before the forward of a micro-batch. Work of the main stream that comes later uses its factors.
  void begin_micro_batch(Exec& ex, const HostBatch& batch, bool training);

 private:
  bool averages_micro_batches() const { return average_ == LossAverage::MicroBatch; }
  Tensor scalars(int64_t begin, int64_t count) const;
  void update_factors(Exec& ex, const LossWeights& weights);

  const std::vector<LossSpec>& losses_;
  LossAverage average_;
  Buffer memory_;
  Tensor counts_;  // f64 [losses]: of values, or of micro-batches with values
  Tensor factors_, shares_;
  ConstTensor loss_scale_{};
};

}  // namespace bev
