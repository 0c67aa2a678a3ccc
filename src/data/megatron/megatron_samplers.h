// Which samples each data-parallel rank takes after any number of consumed samples: Megatron-LM's
// samplers as functions of a position. The single one is what training does: sample n is number n.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "data/batch.h"

namespace bev {

// The ranks that share the batches of a training.
struct SamplerShape {
  int64_t total = 0;  // samples of the dataset
  int64_t micro_batch = 1, ranks = 1;

  int64_t step() const { return micro_batch * ranks; }
};

// The micro-batches that `rank` still takes when `consumed` samples are gone. A last one that is
// not full for all ranks is dropped or cut.
std::vector<std::vector<int64_t>> single_batches(const SamplerShape& shape, int64_t consumed,
                                                 int64_t rank, bool drop_last);

// Validation over everything: every `ranks`-th sample, one at a time.
std::vector<int64_t> full_validation(const SamplerShape& shape, int64_t rank);

// torch.randperm with a generator seeded by `seed`, for fewer than kMostShuffled things; for more
// torch has another method.
inline constexpr int64_t kMostShuffled = 0xFFFFFFFF / 20;
void torch_permutation(uint32_t seed, std::vector<int64_t>& permutation);

// Shuffled epoch by epoch, what does not fill a micro-batch of all ranks left out. Sharded: each
// rank keeps to its own part of the dataset.
class CyclicOrder {
 public:
  // REQUIRES: one micro-batch of all ranks fits the total, which is below kMostShuffled.
  CyclicOrder(const SamplerShape& shape, bool sharded);

  // Samples of one epoch, of all ranks together.
  int64_t epoch_samples() const { return shape_.total - shape_.total % shape_.step(); }

  // The sample at a position that counts the samples of all ranks, micro-batch by micro-batch, rank
  // by rank. One epoch's permutation is kept; another epoch's is made first. Any thread may ask.
  int64_t at(int64_t position) const;

  // What Megatron hands one rank for the rest of the epoch. Without shards the first ranks may get
  // a micro-batch more than the last ones.
  std::vector<std::vector<int64_t>> batches(int64_t consumed, int64_t rank) const;

 private:
  // The `own`-th sample of a rank in an epoch.
  int64_t take(int64_t epoch, int64_t rank, int64_t own) const;

  SamplerShape shape_;
  bool sharded_;
  mutable std::mutex mutex_;
  mutable std::vector<int64_t> permutation_;
  mutable int64_t epoch_ = -1;
};

// Samples in a cyclic order.
class CyclicDataset final : public Dataset {
 public:
  CyclicDataset(std::shared_ptr<const Dataset> samples, const SamplerShape& shape)
      : samples_(std::move(samples)), order_(shape, true) {}

  void read(int64_t index, HostBatch& batch, int64_t at) const override;
  std::string describe(int64_t index) const override;
  SampleSource source(int64_t index) const override { return samples_->source(order_.at(index)); }

 private:
  std::shared_ptr<const Dataset> samples_;
  CyclicOrder order_;
};

}  // namespace bev
