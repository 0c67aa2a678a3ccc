#include "infer/sampling.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "support/expect_error.h"

namespace bev {
namespace {

using test::expect_error;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Probabilities 1/15, 2/15, 4/15, 8/15 in the order 2, 0, 3, 1.
std::vector<float> logits() {
  const auto ln2 = static_cast<float>(std::log(2.0));
  return {5 + ln2, 5 + 3 * ln2, 5.0f, 5 + 2 * ln2};
}

constexpr int kDraws = 20000;

std::array<int, 4> counts(const SamplingOptions& options) {
  Sampler sampler(options);
  const std::vector<float> values = logits();
  std::array<int, 4> found{};
  for (int i = 0; i < kDraws; ++i)
    ++found[static_cast<size_t>(sampler.choose(values, i % 7, i / 7))];
  return found;
}

// Pearson's statistic of the draws. What has no probability must not be drawn at all.
void expect_frequencies(const SamplingOptions& options, std::array<double, 4> weights) {
  double sum = 0;
  for (const double w : weights) sum += w;
  const std::array<int, 4> found = counts(options);
  double statistic = 0;
  for (size_t i = 0; i < 4; ++i) {
    const double expected = kDraws * weights[i] / sum;
    if (weights[i] == 0) {
      EXPECT_EQ(found[i], 0) << i;
    } else {
      statistic += (found[i] - expected) * (found[i] - expected) / expected;
    }
  }
  // Three degrees of freedom at most: exceeded by chance once in 100,000 seeds.
  EXPECT_LT(statistic, 25.9);
}

TEST(Sampler, DrawsByProbability) {
  expect_frequencies({.seed = 1}, {2, 8, 1, 4});
  expect_frequencies({.seed = 2}, {2, 8, 1, 4});
}

TEST(Sampler, Temperature) {
  expect_frequencies({.temperature = 0.5, .seed = 1}, {4, 64, 1, 16});
  const double root = std::sqrt(2.0);
  expect_frequencies({.temperature = 2, .seed = 1}, {root, 2 * root, 1, 2});
  expect_frequencies({.temperature = 1e6, .seed = 1}, {1, 1, 1, 1});
  expect_frequencies({.temperature = 1e-300, .seed = 1}, {0, 1, 0, 0});
  expect_frequencies({.temperature = 0, .seed = 1}, {0, 1, 0, 0});
}

TEST(Sampler, TopK) {
  expect_frequencies({.top_k = 1, .seed = 1}, {0, 1, 0, 0});
  expect_frequencies({.top_k = 2, .seed = 1}, {0, 8, 0, 4});
  expect_frequencies({.top_k = 3, .seed = 1}, {2, 8, 0, 4});
  expect_frequencies({.top_k = 4, .seed = 1}, {2, 8, 1, 4});
  expect_frequencies({.top_k = 1000, .seed = 1}, {2, 8, 1, 4});
}

// 8/15 = 0.533, 12/15 = 0.8, 14/15 = 0.933.
TEST(Sampler, TopP) {
  expect_frequencies({.top_p = 0, .seed = 1}, {0, 1, 0, 0});
  expect_frequencies({.top_p = 0.5, .seed = 1}, {0, 1, 0, 0});
  expect_frequencies({.top_p = 0.54, .seed = 1}, {0, 8, 0, 4});
  expect_frequencies({.top_p = 0.79, .seed = 1}, {0, 8, 0, 4});
  expect_frequencies({.top_p = 0.81, .seed = 1}, {2, 8, 0, 4});
  expect_frequencies({.top_p = 0.94, .seed = 1}, {2, 8, 1, 4});
  // Among the k likeliest only: 8/12 = 0.67.
  expect_frequencies({.top_k = 2, .top_p = 0.6, .seed = 1}, {0, 1, 0, 0});
  expect_frequencies({.top_k = 2, .top_p = 0.7, .seed = 1}, {0, 8, 0, 4});
}

TEST(Sampler, EqualLogitsGoToTheSmallestId) {
  for (const double temperature : {0.0, 1.0}) {
    Sampler sampler({.temperature = temperature, .top_k = 1});
    EXPECT_EQ(sampler.choose(std::vector<float>{1, 3, 3, 2}, 0, 0), 1);
    EXPECT_EQ(sampler.choose(std::vector<float>(5, 0.0f), 0, 0), 0);
  }
}

TEST(Sampler, WhatIsNotFiniteIsNeverDrawn) {
  for (const double temperature : {0.0, 1.0}) {
    Sampler sampler({.temperature = temperature});
    const std::vector<float> one{kNan, kInfinity, -3.0f, -kInfinity};
    for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(sampler.choose(one, 0, i), 2);
    for (const std::vector<float>& none :
         {std::vector<float>{}, std::vector<float>{kNan, -kInfinity}})
      expect_error(ErrorKind::Numerics, "no finite probability",
                   [&] { sampler.choose(none, 0, 0); });
  }
}

TEST(Sampler, IsAFunctionOfSeedSampleAndPosition) {
  const std::vector<float> uniform(1 << 16, 0.0f);
  Sampler a({.seed = 5}), b({.seed = 5}), other({.seed = 6});
  std::set<int32_t> different;
  for (int64_t sample = 0; sample < 5; ++sample) {
    for (int64_t position = 0; position < 5; ++position) {
      const int32_t id = a.choose(uniform, sample, position);
      EXPECT_EQ(id, b.choose(uniform, sample, position));
      EXPECT_NE(id, other.choose(uniform, sample, position));
      different.insert(id);
    }
  }
  EXPECT_EQ(different.size(), 25u);
}

}  // namespace
}  // namespace bev
