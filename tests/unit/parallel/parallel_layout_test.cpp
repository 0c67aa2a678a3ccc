#include "parallel/parallel_layout.h"

#include <gtest/gtest.h>

#include "comm/communicator.h"
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

TEST(Layout, InWords) {
  EXPECT_EQ(describe({}), "1 rank");
  EXPECT_EQ(describe({.tensor = 8, .data = 6, .pipeline = 8, .sequence = true, .zero = 1}),
            "384 ranks: 8 share each matrix, and the tokens between, 6 share the batch and the "
            "optimizer's state, 8 share the layers");
}

TEST(Groups, OfAThousandRanksKnowTheirPlace) {
  const ParallelLayout layout{.tensor = 8, .data = 32, .pipeline = 4};
  PlanningCommunicator world(8 * 32 * 3 + 8 * 5 + 7, layout.world());
  ProcessGroups groups(layout, world);
  EXPECT_EQ(groups.tensor().rank(), 7);
  EXPECT_EQ(groups.data().rank(), 5);
  EXPECT_EQ(groups.pipeline().rank(), 3);
  EXPECT_EQ(groups.model_parallel().size(), 32);
  EXPECT_EQ(groups.loss_group().size(), 128);
  EXPECT_EQ(groups.sent().total(), 0);
}

}  // namespace
}  // namespace bev
