#include <gtest/gtest.h>

#include "base/format.h"
#include "model/family/family.h"
#include "model/stage.h"

namespace bev {
namespace {

// "0+2 2+1 | 3+4": first and count of each group, those that are recomputed before the bar.
std::string groups_of(const RecomputeConfig& recompute, size_t blocks) {
  std::string text;
  for (const RecomputeGroup& group : recompute_groups(recompute_spec(recompute), blocks))
    text += format("{}{}{}+{}", text.empty() ? "" : " ", group.recomputed ? "" : "| ", group.first,
                   group.count);
  return text;
}

RecomputeConfig full(RecomputeMethod method, int64_t layers) {
  return {.granularity = Recompute::Full, .method = method, .layers = layers};
}

TEST(BlockGroups, NothingIsRecomputedAsAWhole) {
  EXPECT_EQ(groups_of({}, 3), "| 0+3");
  EXPECT_EQ(groups_of({.granularity = Recompute::Selective, .layers = 1}, 3), "| 0+3");
}

TEST(BlockGroups, UniformGroupsOfWhichTheLastMayBeSmaller) {
  EXPECT_EQ(groups_of(full(RecomputeMethod::Uniform, 0), 3), "0+1 1+1 2+1");
  EXPECT_EQ(groups_of(full(RecomputeMethod::Uniform, 1), 3), "0+1 1+1 2+1");
  EXPECT_EQ(groups_of(full(RecomputeMethod::Uniform, 2), 3), "0+2 2+1");
  EXPECT_EQ(groups_of(full(RecomputeMethod::Uniform, 2), 4), "0+2 2+2");
  EXPECT_EQ(groups_of(full(RecomputeMethod::Uniform, 3), 2), "0+2");
}

TEST(BlockGroups, TheFirstBlocksEachForItself) {
  EXPECT_EQ(groups_of(full(RecomputeMethod::Block, 0), 3), "0+1 1+1 2+1");
  EXPECT_EQ(groups_of(full(RecomputeMethod::Block, 1), 3), "0+1 | 1+2");
  EXPECT_EQ(groups_of(full(RecomputeMethod::Block, 3), 3), "0+1 1+1 2+1");
  EXPECT_EQ(groups_of(full(RecomputeMethod::Block, 4), 3), "0+1 1+1 2+1");
}

}  // namespace
}  // namespace bev
