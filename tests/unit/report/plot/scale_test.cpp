#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "report/plot/figure.h"
#include "support/expect_error.h"

namespace bev {
namespace {

std::string labels(Range range, ScaleKind kind, int most) {
  std::string text;
  for (const Tick& tick : ticks_within(range, kind, most))
    text += (text.empty() ? "" : " ") + tick.label;
  return text;
}

TEST(Scale, Places) {
  const Scale down({2, 4}, 100, 0);
  EXPECT_DOUBLE_EQ(down.place(2), 100);
  EXPECT_DOUBLE_EQ(down.place(3), 50);
  EXPECT_DOUBLE_EQ(down.place(5), -50);
  const Scale log({1, 100}, 0, 10, ScaleKind::Log);
  EXPECT_DOUBLE_EQ(log.place(10), 5);
  EXPECT_TRUE(std::isnan(log.place(0)));
  EXPECT_TRUE(std::isnan(log.place(-1)));
  EXPECT_TRUE(std::isnan(down.place(NAN)));
  EXPECT_TRUE(std::isnan(down.place(HUGE_VAL)));
}

TEST(Scale, RefusesARangeWithoutRoom) {
  test::expect_error(ErrorKind::Internal, "scale", [] { Scale({1, 1}, 0, 1); });
  test::expect_error(ErrorKind::Internal, "scale", [] { Scale({0, 1}, 0, 1, ScaleKind::Log); });
  test::expect_error(ErrorKind::Internal, "scale", [] { Scale({0, HUGE_VAL}, 0, 1); });
}

TEST(Ticks, AreRoundNumbers) {
  using enum ScaleKind;
  EXPECT_EQ(labels({2.6, 7.3}, Linear, 8), "3 4 5 6 7");
  EXPECT_EQ(labels({2.71, 2.89}, Linear, 5), "2.75 2.80 2.85");
  EXPECT_EQ(labels({0, 300}, Linear, 9), "0 50 100 150 200 250 300");
  EXPECT_EQ(labels({0, 3000}, Linear, 5), "0 1000 2000 3000");
  EXPECT_EQ(labels({0, 1e5}, Linear, 6), "0 20k 40k 60k 80k 100k");
  EXPECT_EQ(labels({0, 2.5e6}, Linear, 6), "0 0.5M 1.0M 1.5M 2.0M 2.5M");
  EXPECT_EQ(labels({0, 3e-3}, Linear, 4), "0 1e-3 2e-3 3e-3");
  EXPECT_EQ(labels({-0.02, 0.02}, Linear, 5), "-0.02 -0.01 0 0.01 0.02");
  EXPECT_EQ(labels({1000500, 1000600}, Linear, 3), "1,000,500 1,000,550 1,000,600");
}

TEST(Ticks, OfLogarithmsAreDecadesAndWhatLiesBetween) {
  using enum ScaleKind;
  EXPECT_EQ(labels({0.09, 12}, Log, 5), "0.1 0.3 1 3 10");
  EXPECT_EQ(labels({0.09, 12}, Log, 8), "0.1 0.2 0.5 1 2 5 10");
  EXPECT_EQ(labels({0.09, 12}, Log, 4), "0.1 1 10");
  EXPECT_EQ(labels({2.6, 7.3}, Log, 8), "3 4 5 6 7");
  EXPECT_EQ(labels({1e-5, 1e3}, Log, 5), "1e-5 1e-3 0.1 10 1000");
}

TEST(Ticks, OfAnyRangeAreFewAndInside) {
  for (const ScaleKind kind : {ScaleKind::Linear, ScaleKind::Log}) {
    for (double low = 1e-140; low < 1e140; low *= 37) {
      for (const double factor : {1.0001, 1.3, 7.0, 1e3, 1e9}) {
        const Range range{low, low * factor};
        for (const int most : {2, 5, 9}) {
          const std::vector<Tick> ticks = ticks_within(range, kind, most);
          EXPECT_LE(ticks.size(), static_cast<size_t>(most) + 1) << low << " " << factor;
          for (const Tick& tick : ticks) {
            EXPECT_GE(tick.value, range.low - 1e-8 * (range.high - range.low));
            EXPECT_LE(tick.value, range.high + 1e-8 * (range.high - range.low));
            EXPECT_LE(tick.label.size(), 22u);
          }
          if (most > 3) {
            EXPECT_GE(ticks.size(), 1u) << low << " " << factor << " " << most;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace bev
