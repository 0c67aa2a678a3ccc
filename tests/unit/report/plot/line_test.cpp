#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "report/plot/figure.h"

namespace bev {
namespace {

TEST(Smoothed, IsTheMeanAroundEachValue) {
  const std::vector<double> values{1, 2, 6, 4, 10};
  EXPECT_EQ(smoothed(values, 1), values);
  EXPECT_EQ(smoothed(values, 3), (std::vector<double>{1, 3, 4, 20.0 / 3, 7}));
  // A straight line stays itself until the window reaches the end.
  EXPECT_EQ(smoothed(std::vector<double>{1, 2, 3, 4, 5, 6}, 5),
            (std::vector<double>{1, 2, 3, 4, 4.5, 5}));
  EXPECT_TRUE(smoothed({}, 3).empty());
}

TEST(Smoothed, LeavesOutWhatIsNotFinite) {
  const std::vector<double> means = smoothed(std::vector<double>{1, NAN, 3, 5, HUGE_VAL, 7}, 3);
  EXPECT_EQ(means[0], 1);
  EXPECT_TRUE(std::isnan(means[1]));
  EXPECT_EQ(means[2], 4);
  EXPECT_EQ(means[3], 4);
  EXPECT_TRUE(std::isnan(means[4]));
  EXPECT_EQ(means[5], 7);
}

TEST(TypicalRange, LeavesOutAFewOutliers) {
  std::vector<double> values(500);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 3 - 0.002 * static_cast<double>(i);
  values[100] = 1e6;
  values[333] = -1e6;
  values[400] = NAN;
  const Range range = typical_range(values);
  EXPECT_GT(range.low, 1.9);
  EXPECT_LT(range.low, 2.1);
  EXPECT_GT(range.high, 2.9);
  EXPECT_LE(range.high, 3);
  // Of a curve that is wide everywhere, nearly all of the width.
  std::vector<double> wide(20000);
  for (size_t i = 0; i < wide.size(); ++i) wide[i] = static_cast<double>(i * 7919 % 1000) / 1000;
  EXPECT_LT(typical_range(wide).low, 0.1);
  EXPECT_GT(typical_range(wide).high, 0.9);
  EXPECT_EQ(typical_range(std::vector<double>{4, -1, NAN, 2}), (Range{-1, 4}));
  EXPECT_EQ(typical_range(std::vector<double>{4, -1, 0, 2}, true), (Range{2, 4}));
  EXPECT_GT(typical_range(std::vector<double>{NAN}).low, typical_range({}).high);
}

std::vector<Place> zigzag(size_t count, double width) {
  std::vector<Place> places;
  for (size_t i = 0; i < count; ++i)
    places.push_back({width * static_cast<double>(i) / static_cast<double>(count),
                      i % 2 == 0 ? 10.0 : 20.0 + static_cast<double>(i % 7)});
  return places;
}

TEST(Thinned, KeepsShortLines) {
  const std::vector<Place> places = zigzag(40, 100);
  const std::vector<Place> kept = thinned(places);
  ASSERT_EQ(kept.size(), places.size());
  for (size_t i = 0; i < kept.size(); ++i) EXPECT_EQ(kept[i].x, places[i].x);
}

TEST(Thinned, KeepsTheExtremesOfEachColumn) {
  const std::vector<Place> places = zigzag(100000, 300);
  const std::vector<Place> kept = thinned(places);
  EXPECT_LE(kept.size(), 600u);
  for (int column = 0; column < 300; ++column) {
    double low = HUGE_VAL, high = -HUGE_VAL;
    for (const Place& place : kept) {
      if (std::floor(place.x) != column) continue;
      low = std::min(low, place.y);
      high = std::max(high, place.y);
    }
    EXPECT_EQ(low, 10);
    EXPECT_EQ(high, 26);
  }
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end(),
                             [](const Place& a, const Place& b) { return a.x < b.x; }));
}

TEST(Thinned, KeepsGaps) {
  const double gap = std::nan("");
  const std::vector<Place> kept =
      thinned(std::vector<Place>{{0, gap}, {1, 5}, {2, gap}, {3, gap}, {4, 6}, {4.5, gap}, {5, 7}});
  ASSERT_EQ(kept.size(), 4u);
  EXPECT_EQ(kept[0].y, 5);
  EXPECT_TRUE(std::isnan(kept[1].y));
  EXPECT_EQ(kept[2].y, 6);
  EXPECT_EQ(kept[3].y, 7);
}

TEST(Thinned, EveryOtherValueMissingStaysSmall) {
  std::vector<Place> places = zigzag(100000, 300);
  for (size_t i = 1; i < places.size(); i += 2) places[i].y = std::nan("");
  EXPECT_LE(thinned(places).size(), 900u);
}

}  // namespace
}  // namespace bev
