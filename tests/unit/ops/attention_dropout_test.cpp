// The draws of attention dropout as random numbers. Every test names the fault that makes it fail.
#include "ops/attention_dropout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace bev::ops {
namespace {

constexpr size_t kRows = 64, kHeads = 4, kKeys = 1024;

// In [-1/2, 1/2), [row][head][key].
struct Draws {
  std::vector<double> values;

  Draws() {
    for (uint64_t row = 0; row < kRows; ++row) {
      for (uint64_t head = 0; head < kHeads; ++head) {
        for (uint64_t j = 0; j < kKeys; ++j) values.push_back(draw(row, head, j) / 65536.0 - 0.5);
      }
    }
  }
  static uint32_t draw(uint64_t row, uint64_t head, uint64_t j) {
    return attention_draw(77, 5000 + row, head, j);
  }
  double at(size_t row, size_t head, size_t j) const {
    return values[(row * kHeads + head) * kKeys + j];
  }
};

// Fails when a multiple is cut instead of rounded, or a probability next to 0 or 1 leaves the
// range.
TEST(AttentionDropout, ThresholdIsTheNearestMultiple) {
  EXPECT_EQ(attention_threshold(0), 0u);
  EXPECT_EQ(attention_threshold(0x0.fp-17), 0u);
  EXPECT_EQ(attention_threshold(0x1p-17), 1u);
  EXPECT_EQ(attention_threshold(0.1), 6554u);  // 6553.6
  EXPECT_EQ(attention_threshold(0.5), 32768u);
  EXPECT_EQ(attention_threshold(0.999), 65470u);  // 65470.464
  EXPECT_EQ(attention_threshold(std::nextafter(1.0, 0.0)), 65535u);
}

// Fails when the factor is that of the probability asked for.
TEST(AttentionDropout, FactorIsThatOfTheThreshold) {
  EXPECT_EQ(attention_keep_factor(0), 1);
  EXPECT_EQ(attention_keep_factor(0x1p-18), 1);
  EXPECT_EQ(attention_keep_factor(0.5), 2);
  EXPECT_EQ(attention_keep_factor(0.1), 65536.0 / (65536 - 6554));
  EXPECT_EQ(attention_keep_factor(std::nextafter(1.0, 0.0)), 65536);
}

// Five standard deviations. Fails when halves of words overlap or are cut short.
TEST(AttentionDropout, KeepTheRightFraction) {
  const Draws draws;
  const auto count = static_cast<double>(draws.values.size());
  for (const double probability : {0.0001, 0.1, 0.5, 0.9, 0.99999}) {
    const double dropped = attention_threshold(probability) / 65536.0;
    double kept = 0;
    for (const double value : draws.values) kept += (value + 0.5) >= dropped ? 1 : 0;
    const double deviation = std::sqrt(dropped * (1 - dropped) / count);
    EXPECT_NEAR(kept / count, 1 - dropped, 5 * deviation) << probability;
    EXPECT_NEAR(kept * attention_keep_factor(probability) / count, 1, 5 * deviation / (1 - dropped))
        << probability;
  }
}

// Five standard deviations. Fails when keys, heads or rows share bits.
TEST(AttentionDropout, NeighboursAreNotCorrelated) {
  const Draws draws;
  const auto correlation = [&](size_t rows, size_t heads, size_t keys) {
    double sum = 0, count = 0;
    for (size_t row = 0; row + rows < kRows; ++row) {
      for (size_t head = 0; head + heads < kHeads; ++head) {
        for (size_t j = 0; j + keys < kKeys; ++j) {
          sum += draws.at(row, head, j) * draws.at(row + rows, head + heads, j + keys);
          ++count;
        }
      }
    }
    // The variance of a draw is 1 / 12. Returned in standard deviations.
    return std::abs(sum / count) * 12 * std::sqrt(count);
  };
  for (size_t keys = 1; keys <= 16; ++keys) EXPECT_LT(correlation(0, 0, keys), 5) << keys;
  for (size_t keys = 0; keys <= 8; ++keys) {
    EXPECT_LT(correlation(1, 0, keys), 5) << keys;
    EXPECT_LT(correlation(0, 1, keys), 5) << keys;
    EXPECT_LT(correlation(1, 1, keys), 5) << keys;
  }
}

}  // namespace
}  // namespace bev::ops
