#include "data/megatron/megatron_blend.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace bev {
namespace {

// By hand: the one that lags most, with the place counted as at least 1.
TEST(MegatronBlend, WhoLagsMostComesFirst) {
  const MegatronBlendIndex index = build_megatron_blend(std::vector{0.3, 0.7}, 6);
  EXPECT_EQ(index.dataset, (std::vector<int16_t>{1, 0, 1, 1, 0, 1}));
  EXPECT_EQ(index.sample, (std::vector<int64_t>{0, 0, 1, 2, 1, 3}));
}

TEST(MegatronBlend, TheFirstOfEqualsComesFirst) {
  const MegatronBlendIndex index = build_megatron_blend(std::vector{0.5, 0.5}, 4);
  EXPECT_EQ(index.dataset, (std::vector<int16_t>{0, 1, 0, 1}));
}

TEST(MegatronBlend, ExhaustiveTakesEachSampleOnce) {
  const std::vector<int64_t> sizes{1, 100, 7};
  const MegatronBlendIndex index = build_exhaustive_blend(sizes);
  ASSERT_EQ(index.dataset.size(), 108u);
  std::vector<int64_t> counts(3, 0);
  for (size_t i = 0; i < index.dataset.size(); ++i)
    EXPECT_EQ(index.sample[i], counts[static_cast<size_t>(index.dataset[i])]++);
  EXPECT_EQ(counts, sizes);
}

// One after the other ten tenths are less than 1; NumPy adds them in lanes.
TEST(MegatronBlend, WeightsAreAddedAsNumpyDoes) {
  EXPECT_EQ(normalized_weights(std::vector<double>(10, 0.1)), std::vector<double>(10, 0.1));
  const std::vector<double> many = normalized_weights(std::vector<double>(300, 1.0));
  EXPECT_EQ(many, std::vector<double>(300, 1.0 / 300));
}

TEST(MegatronBlend, RequestsHaveASurplus) {
  const BlendRequest main = request_of(1.0 / 3, 100, Compat::Main);
  EXPECT_EQ(main.used, 34);
  EXPECT_EQ(main.built, 35);
  const BlendRequest classic = request_of(1.0 / 3, 100, Compat::Classic);
  EXPECT_EQ(classic.used, 34);
  EXPECT_EQ(classic.built, 34);
}

}  // namespace
}  // namespace bev
