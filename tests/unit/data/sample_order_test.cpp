#include "data/sample_order.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <vector>

#include "base/error.h"

namespace bev {
namespace {

std::vector<int64_t> order(int64_t count, uint64_t key) {
  const KeyedPermutation permutation(count, key);
  std::vector<int64_t> all;
  for (int64_t i = 0; i < count; ++i) all.push_back(permutation(i));
  return all;
}

TEST(KeyedPermutation, EveryNumberOnce) {
  for (const int64_t count :
       {1,   2,   3,   4,    5,    7,    8,    9,    15,   16,   17,    63,    64,   65,
        255, 256, 257, 1000, 1023, 1024, 1025, 4095, 4096, 4097, 65535, 65536, 65537}) {
    for (const uint64_t key : {0ull, 1ull, 0xDEADBEEFull}) {
      std::vector<bool> seen(static_cast<size_t>(count));
      for (const int64_t value : order(count, key)) {
        ASSERT_GE(value, 0);
        ASSERT_LT(value, count);
        ASSERT_FALSE(seen[static_cast<size_t>(value)]) << count << " " << value;
        seen[static_cast<size_t>(value)] = true;
      }
    }
  }
}

TEST(KeyedPermutation, KeysGiveDifferentOrders) {
  for (uint64_t key = 0; key < 20; ++key) EXPECT_NE(order(1000, key), order(1000, key + 1)) << key;
}

// A shuffled order: neighbours lie a third of the range apart on average, and the place says
// nothing about the value.
TEST(KeyedPermutation, IsSpread) {
  for (const int64_t count : {1000, 1024, 10007}) {
    const std::vector<int64_t> all = order(count, 5);
    const auto n = static_cast<double>(count);
    double step = 0, product = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      if (i > 0) step += static_cast<double>(std::abs(all[i] - all[i - 1]));
      product +=
          (static_cast<double>(i) - (n - 1) / 2) * (static_cast<double>(all[i]) - (n - 1) / 2);
    }
    const double correlation = product / (n * (n * n - 1) / 12);
    EXPECT_NEAR(step / (n - 1) / n, 1.0 / 3, 5 * 0.24 / std::sqrt(n)) << count;
    EXPECT_LT(std::abs(correlation), 5 / std::sqrt(n)) << count;
  }
}

// No table: the largest range costs as little as a small one.
TEST(KeyedPermutation, HugeRangesNeedNoTable) {
  constexpr int64_t kMost = int64_t{1} << 62;
  for (const int64_t count : {kMost, kMost - 1, kMost / 2 + 1, kMost / 4 + 1}) {
    const KeyedPermutation permutation(count, 3);
    for (const int64_t i : {int64_t{0}, int64_t{1}, count / 2, count - 1}) {
      EXPECT_GE(permutation(i), 0);
      EXPECT_LT(permutation(i), count);
    }
  }
  EXPECT_THROW(KeyedPermutation(0, 1), Error);
  EXPECT_THROW(KeyedPermutation(-1, 1), Error);
  EXPECT_THROW(KeyedPermutation(kMost + 1, 1), Error);
}

TEST(OrderedSample, EveryEpochHasEveryWindowInAnOrderOfItsOwn) {
  constexpr int64_t kWindows = 37;
  std::vector<std::vector<int64_t>> epochs;
  for (int64_t epoch = 0; epoch < 5; ++epoch) {
    std::vector<int64_t> windows;
    std::vector<bool> seen(kWindows);
    for (int64_t i = 0; i < kWindows; ++i) {
      const OrderedSample sample = ordered_sample(epoch * kWindows + i, kWindows, 1234);
      EXPECT_EQ(sample.epoch, epoch);
      windows.push_back(sample.window);
      seen[static_cast<size_t>(sample.window)] = true;
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), true), kWindows);
    for (const auto& other : epochs) EXPECT_NE(windows, other);
    epochs.push_back(windows);
  }
  EXPECT_NE(ordered_sample(0, 1 << 20, 1).window, ordered_sample(0, 1 << 20, 2).window);
}

}  // namespace
}  // namespace bev
