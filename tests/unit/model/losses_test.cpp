#include "model/losses.h"

#include <gtest/gtest.h>

namespace bev {
namespace {

TEST(Losses, CountTheirUnit) {
  HostBatch batch;
  batch.resize(3, 5, false);
  std::fill(batch.weight.begin(), batch.weight.end(), 1.0F);
  batch.weight[4] = 0;
  EXPECT_EQ(loss_count(LossUnit::Token, batch), 14);
  EXPECT_EQ(loss_count(LossUnit::Sequence, batch), 3);
  EXPECT_EQ(loss_count(LossUnit::MicroBatch, batch), 1);
}

TEST(Losses, TheTotalWeighsMeansNotSums) {
  const std::vector<LossSpec> losses{{"lm"}, {"sop", LossUnit::Sequence, 0.5}};
  LossSums sums{};
  sums[0] = {30, 10};
  sums[1] = {8, 2};
  EXPECT_EQ(total_loss(losses, sums), 5);
  EXPECT_EQ(loss_weights(losses)[1], 0.5);
  const LossMeans means(losses, sums);
  ASSERT_EQ(means.end() - means.begin(), 2);
  EXPECT_EQ(means.begin()[1].name, "sop");
  EXPECT_EQ(means.begin()[1].value, 4);
  sums[1] = {};
  EXPECT_EQ(total_loss(losses, sums), 3);
}

}  // namespace
}  // namespace bev
