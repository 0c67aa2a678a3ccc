#include "pipeline/loss_normalizer.h"

#include <algorithm>

#include "ops/elementwise.h"
#include "ops/update.h"

namespace bev {

LossNormalizer::LossNormalizer(Device& device, const std::vector<LossSpec>& losses,
                               LossAverage average)
    : losses_(losses),
      average_(average),
      memory_(device, 5 * losses.size() * sizeof(double), "scalars"),
      counts_(scalars(2, 1)),
      factors_(scalars(3, 1)),
      shares_(scalars(4, 1)) {}

// Numbers of each loss: sum and count of its values, count over the whole batch, factor, share.
Tensor LossNormalizer::scalars(int64_t begin, int64_t count) const {
  const auto losses = std::ssize(losses_);
  const Tensor all = tensor_over(memory_.data(), DType::f64, {5 * losses});
  return slice(all, 0, begin * losses, count * losses);
}

Losses LossNormalizer::tensors() const {
  return {.factors = factors_,
          .shares = averages_micro_batches() ? shares_ : Tensor{},
          .sums = scalars(0, 2)};
}

void LossNormalizer::update_factors(Exec& ex, const LossWeights& weights) {
  ops::loss_factors(
      ex, {.counts = counts_, .loss_scale = loss_scale_, .weights = weights, .out = factors_});
}

void LossNormalizer::count(Exec& ex, Communicator& group, std::span<const HostBatch> batches) {
  for (size_t i = 0; i < losses_.size(); ++i) {
    double count = 0;
    for (const HostBatch& batch : batches) {
      const double values = loss_count(losses_[i].unit, batch);
      count += averages_micro_batches() ? (values > 0 ? 1 : 0) : values;
    }
    ops::fill(ex, {.out = slice(counts_, 0, static_cast<int64_t>(i), 1), .value = count});
  }
  if (group.size() > 1) group.all_reduce(ex, counts_);
  if (!averages_micro_batches()) update_factors(ex, loss_weights(losses_));
}

void LossNormalizer::begin_micro_batch(Exec& ex, const HostBatch& batch, bool training) {
  if (!averages_micro_batches()) return;
  LossWeights weights = loss_weights(losses_);
  for (size_t i = 0; i < losses_.size(); ++i) {
    const double share = 1 / std::max(loss_count(losses_[i].unit, batch), 1.0);
    ops::fill(ex, {.out = slice(shares_, 0, static_cast<int64_t>(i), 1), .value = share});
    weights[i] *= share;
  }
  if (training) update_factors(ex, weights);
}

}  // namespace bev
