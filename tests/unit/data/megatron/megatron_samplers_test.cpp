#include "data/megatron/megatron_samplers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace bev {
namespace {

using Batches = std::vector<std::vector<int64_t>>;

// What torch.randperm gives.
TEST(Samplers, TorchPermutation) {
  std::vector<int64_t> permutation(10);
  torch_permutation(0, permutation);
  EXPECT_EQ(permutation, (std::vector<int64_t>{4, 1, 7, 5, 3, 9, 0, 8, 6, 2}));
  torch_permutation(1, permutation);
  EXPECT_EQ(permutation, (std::vector<int64_t>{5, 6, 1, 2, 0, 8, 9, 3, 7, 4}));
}

// A step's samples do not depend on how many ranks share them.
TEST(Samplers, SameSamplesForAnyNumberOfRanks) {
  for (const int64_t consumed : {0, 16, 40}) {
    for (const int64_t ranks : {1, 2, 4}) {
      const SamplerShape shape{.total = 103, .micro_batch = 8 / ranks, .ranks = ranks};
      std::vector<Batches> of_rank;
      for (int64_t rank = 0; rank < ranks; ++rank)
        of_rank.push_back(single_batches(shape, consumed, rank, true));
      for (size_t step = 0; step < of_rank[0].size(); ++step) {
        std::vector<int64_t> all;
        for (const Batches& batches : of_rank)
          all.insert(all.end(), batches[step].begin(), batches[step].end());
        std::vector<int64_t> plain(8);
        std::iota(plain.begin(), plain.end(), consumed + 8 * static_cast<int64_t>(step));
        EXPECT_EQ(all, plain);
      }
      EXPECT_EQ(of_rank[0].size(), static_cast<size_t>((103 - consumed) / 8));
    }
  }
}

TEST(Samplers, LastBatchIsDroppedOrCut) {
  const SamplerShape shape{.total = 11, .micro_batch = 2, .ranks = 2};
  EXPECT_EQ(single_batches(shape, 8, 0, true), Batches{});
  EXPECT_EQ(single_batches(shape, 8, 0, false), (Batches{{8, 9}}));
  EXPECT_EQ(single_batches(shape, 8, 1, false), (Batches{{10}}));
  EXPECT_EQ(full_validation(shape, 1), (std::vector<int64_t>{1, 3, 5, 7, 9}));
}

TEST(Samplers, CyclicTakesEachSampleOncePerEpoch) {
  for (const bool sharded : {true, false}) {
    for (const int64_t ranks : {1, 2, 4}) {
      const CyclicOrder order({.total = 64, .micro_batch = 2, .ranks = ranks}, sharded);
      ASSERT_EQ(order.epoch_samples(), 64);
      std::vector<std::vector<int64_t>> epochs;
      for (int64_t epoch = 0; epoch < 3; ++epoch) {
        std::vector<int64_t> samples;
        for (int64_t i = 0; i < 64; ++i) samples.push_back(order.at(epoch * 64 + i));
        EXPECT_EQ(std::set<int64_t>(samples.begin(), samples.end()).size(), 64u);
        for (const auto& other : epochs) EXPECT_NE(samples, other);
        epochs.push_back(samples);
      }
      // Any place at once, back and forth.
      EXPECT_EQ(order.at(17), epochs[0][17]);
      EXPECT_EQ(order.at(130), epochs[2][2]);
    }
  }
}

}  // namespace
}  // namespace bev
