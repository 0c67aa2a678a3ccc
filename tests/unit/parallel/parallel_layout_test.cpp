#include "parallel/parallel_layout.h"

#include <gtest/gtest.h>

#include "comm/planning_communicator.h"
#include "parallel/process_groups.h"

namespace bev {
namespace {

// Faults that fail it: a stride of the wrong axis, peers in another order than their ranks.
TEST(Grid, PeersDifferAlongTheAskedAxesOnly) {
  const RankGrid grid{{Axis::Tensor, 3}, {Axis::Context, 1}, {Axis::Data, 4}, {Axis::Pipeline, 2}};
  const std::vector<AxisSet> sets{{},
                                  {Axis::Tensor},
                                  {Axis::Data, Axis::Context},
                                  {Axis::Pipeline},
                                  {Axis::Tensor, Axis::Pipeline},
                                  {Axis::Tensor, Axis::Data, Axis::Pipeline}};
  for (const AxisSet& over : sets) {
    for (int rank = 0; rank < grid.world(); ++rank) {
      std::vector<int> expected;
      for (int other = 0; other < grid.world(); ++other) {
        bool same = true;
        for (const Axis axis : {Axis::Tensor, Axis::Context, Axis::Data, Axis::Pipeline})
          same = same && (over.contains(axis) ||
                          grid.coordinate(other, axis) == grid.coordinate(rank, axis));
        if (same) expected.push_back(other);
      }
      EXPECT_EQ(grid.peers(rank, over), expected);
    }
  }
}

// The second grid covers the same ranks. Fails when its axes have other strides.
TEST(Grid, OfExpertsCoversTheSameRanks) {
  const ParallelLayout layout{
      .tensor = 2, .context = 1, .data = 8, .pipeline = 2, .expert = 4, .expert_tensor = 2};
  EXPECT_EQ(layout.expert_data(), 2);
  const RankGrid dense = layout.grid(), experts = layout.grid(GridKind::Experts);
  EXPECT_EQ(experts.world(), layout.world());
  for (int rank = 0; rank < layout.world(); ++rank) {
    EXPECT_EQ(dense.coordinate(rank, Axis::Pipeline), experts.coordinate(rank, Axis::Pipeline));
    EXPECT_EQ(experts.coordinate(rank, Axis::Expert), rank / 2 % 4);
    EXPECT_EQ(experts.peers(rank, {Axis::Data}),
              (std::vector<int>{rank / 16 * 16 + rank % 8, rank / 16 * 16 + rank % 8 + 8}));
  }
}

TEST(Layout, InWords) {
  EXPECT_EQ(describe({}), "1 rank");
  EXPECT_EQ(describe({.tensor = 8, .data = 6, .pipeline = 8, .sequence = true, .zero = 1}),
            "384 ranks: tensor 8 with sequence parallelism, data 6 with ZeRO 1, pipeline 8");
}

TEST(Groups, OfAThousandRanksKnowTheirPlace) {
  const ParallelLayout layout{.tensor = 8, .data = 32, .pipeline = 4};
  PlanningCommunicator world(8 * 32 * 3 + 8 * 5 + 7, layout.world());
  ProcessGroups groups(layout, world);
  EXPECT_EQ(groups.over({Axis::Tensor}).rank(), 7);
  EXPECT_EQ(groups.over(shard_group(GridKind::Dense)).rank(), 5);
  EXPECT_EQ(groups.over({Axis::Pipeline}).rank(), 3);
  EXPECT_EQ(groups.over({Axis::Context, Axis::Data, Axis::Pipeline}).size(), 128);
  EXPECT_EQ(&groups.over({Axis::Tensor}), &groups.over({Axis::Tensor}));
  EXPECT_EQ(groups.of_stages({1, 3}).rank(), 1);
  EXPECT_EQ(groups.kv_replica_group(4).rank(), 3);
  EXPECT_EQ(groups.sent().total(), 0);
}

}  // namespace
}  // namespace bev
