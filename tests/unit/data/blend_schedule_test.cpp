#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/philox.h"
#include "data/blended_dataset.h"

namespace bev {
namespace {

using Weights = std::vector<double>;
using Whole = std::vector<int64_t>;

// Walks one period and checks the error of every dataset at every prefix, in whole numbers, and
// that each has its samples in order.
void expect_close_at_every_prefix(const BlendSchedule& schedule) {
  const Whole& weights = schedule.weights();
  const int64_t period = schedule.period(), slack = 2 * static_cast<int64_t>(weights.size()) - 2;
  ASSERT_EQ(std::accumulate(weights.begin(), weights.end(), int64_t{0}), period);
  Whole counts(weights.size(), 0);
  for (int64_t n = 1; n <= period; ++n) {
    const BlendSchedule::Place place = schedule.at(n - 1);
    ASSERT_EQ(place.sample, counts[place.dataset]);
    ASSERT_EQ(schedule.place_of(place.dataset, place.sample), n - 1);
    ++counts[place.dataset];
    for (size_t i = 0; i < weights.size(); ++i) {
      const int64_t error = std::abs(n * weights[i] - counts[i] * period);  // in 1 / period
      ASSERT_LT(error, period) << "dataset " << i << " after " << n;
      ASSERT_LE(error * slack, period * (slack - 1)) << "dataset " << i << " after " << n;
    }
  }
  EXPECT_EQ(counts, weights);
}

TEST(BlendSchedule, LessThanOneSampleFromTheWeightAtEveryPlace) {
  for (const Weights& weights :
       {Weights{1, 1}, Weights{0.3, 0.7}, Weights{1, 2, 3, 4}, Weights{0.9, 0.05, 0.05},
        Weights{1, 999}, Weights{5, 5, 5, 1, 1, 1, 1}, Weights{0.333, 0.333, 0.334}})
    expect_close_at_every_prefix(BlendSchedule(weights));
  // Many of all sizes.
  for (uint64_t trial = 0; trial < 60; ++trial) {
    Weights weights;
    for (uint64_t i = 0; i < 2 + trial % 19; ++i) {
      const PhiloxBlock draw = philox(7, trial, i);
      weights.push_back(1 + draw[0] % (draw[1] % 3 == 0 ? 1000 : 7));
    }
    expect_close_at_every_prefix(BlendSchedule(weights));
  }
}

TEST(BlendSchedule, WeightsBecomeWholeNumbers) {
  constexpr int64_t kLimit = BlendSchedule::kLongestPeriod;
  EXPECT_EQ(whole_weights(Weights{0.3, 0.7}, kLimit), (Whole{3, 7}));
  EXPECT_EQ(whole_weights(Weights{30, 70}, kLimit), (Whole{3, 7}));
  EXPECT_EQ(whole_weights(Weights{0.125, 12.5}, kLimit), (Whole{1, 100}));
  EXPECT_EQ(whole_weights(Weights{671, 69}, kLimit), (Whole{671, 69}));
  EXPECT_EQ(whole_weights(Weights{4.5}, kLimit), (Whole{1}));
  // Too fine for the period: parts of it, nobody without.
  const Whole parts = whole_weights(Weights{1.0 / 3, 2.0 / 3, 1e-9}, kLimit);
  EXPECT_NEAR(static_cast<double>(parts[0]), kLimit / 3.0, 2);
  EXPECT_GE(parts[2], 1);
  EXPECT_LE(parts[0] + parts[1] + parts[2], kLimit);
  const Whole tiny = whole_weights(Weights{1e9, 1, 1, 1, 1}, 6);
  EXPECT_EQ(tiny, (Whole{2, 1, 1, 1, 1}));
  expect_close_at_every_prefix(BlendSchedule(Weights{123'456'789.0, 1'000'000.0, 77.0}));
}

// Any place at once: far out each dataset has its share to the sample.
TEST(BlendSchedule, TenBillionSamplesOut) {
  const BlendSchedule schedule(Weights{0.25, 0.6, 0.15});
  constexpr int64_t kFar = 10'000'000'000;
  for (int64_t n = kFar; n < kFar + 1000; ++n) {
    const BlendSchedule::Place place = schedule.at(n);
    const double share = std::vector{0.25, 0.6, 0.15}[place.dataset];
    EXPECT_NEAR(static_cast<double>(place.sample), share * static_cast<double>(n), 1.0);
    EXPECT_EQ(schedule.place_of(place.dataset, place.sample), n);
  }
}

TEST(BlendSchedule, OneDataset) {
  const BlendSchedule schedule(Weights{3});
  EXPECT_EQ(schedule.period(), 1);
  EXPECT_EQ(schedule.at(12345).sample, 12345);
}

}  // namespace
}  // namespace bev
