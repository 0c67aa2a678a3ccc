#include "model/losses.h"

#include "base/check.h"

namespace bev {

double loss_count(LossUnit unit, const HostBatch& batch) {
  switch (unit) {
    case LossUnit::Token: return batch.valid_tokens();
    case LossUnit::Sequence: return batch.valid_sequences();
    case LossUnit::MicroBatch: break;
  }
  return 1;
}

LossWeights loss_weights(std::span<const LossSpec> losses) {
  BEV_CHECK(losses.size() <= kMostLosses, Internal, "{} losses", losses.size());
  LossWeights weights{};
  for (size_t i = 0; i < losses.size(); ++i) weights[i] = losses[i].weight;
  return weights;
}

LossMeans::LossMeans(std::initializer_list<LossMean> means) : count_(means.size()) {
  std::copy(means.begin(), means.end(), means_.begin());
}

LossMeans::LossMeans(std::span<const LossSpec> losses, const LossSums& sums)
    : count_(losses.size()) {
  for (size_t i = 0; i < count_; ++i) means_[i] = {losses[i].name, sums[i].mean()};
}

double total_loss(std::span<const LossSpec> losses, const LossSums& sums) {
  double total = 0;
  for (size_t i = 0; i < losses.size(); ++i) total += losses[i].weight * sums[i].mean();
  return total;
}

}  // namespace bev
