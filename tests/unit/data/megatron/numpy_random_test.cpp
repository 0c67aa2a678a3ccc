#include "data/megatron/numpy_random.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace bev {
namespace {

std::vector<int> shuffled(uint32_t seed) {
  std::vector<int> all(10);
  std::iota(all.begin(), all.end(), 0);
  NumpyRandom(seed).shuffle(all);
  return all;
}

// What NumPy gives.
TEST(NumpyRandom, KnownNumbers) {
  EXPECT_EQ(shuffled(42), (std::vector<int>{8, 1, 5, 0, 7, 2, 9, 4, 3, 6}));
  EXPECT_EQ(shuffled(0), (std::vector<int>{2, 8, 4, 9, 1, 6, 7, 3, 0, 5}));
  EXPECT_EQ(NumpyRandom(42).random(), 0.3745401188473625);
  NumpyRandom random(42);
  std::vector<int64_t> drawn;
  for (int i = 0; i < 5; ++i) drawn.push_back(random.integer(0, 100));
  EXPECT_EQ(drawn, (std::vector<int64_t>{51, 92, 14, 71, 60}));
}

TEST(NumpyRandom, Geometric) {
  // ceil(log(1 - 0.5488135) / log(0.8)).
  EXPECT_EQ(NumpyRandom(0).geometric(0.2), 4);
}

TEST(NumpyRandom, ASingleChoiceIsNotDrawn) {
  NumpyRandom one(7), other(7);
  EXPECT_EQ(one.integer(5, 6), 5);
  std::vector<int> alone{3};
  one.shuffle(alone);
  EXPECT_EQ(one.random(), other.random());
}

TEST(NumpyRandom, LargeRanges) {
  NumpyRandom random(1);
  for (int i = 0; i < 1000; ++i) {
    const int64_t low = -(int64_t{1} << 40), high = int64_t{1} << 41;
    const int64_t drawn = random.integer(low, high);
    EXPECT_GE(drawn, low);
    EXPECT_LT(drawn, high);
  }
}

}  // namespace
}  // namespace bev
