#include "report/slowest_rank.h"

#include <gtest/gtest.h>

namespace bev {
namespace {

TEST(SlowestRank, IsTheOneThatComputedLongest) {
  SlowestRank slowest;
  slowest.add(std::vector<RankTimes>{{1, 1.0, 0.5}, {1, 1.3, 0.2}, {1, 1.0, 0.5}});
  slowest.add(std::vector<RankTimes>{{2, 1.0, 0.5}, {2, 1.3, 0.2}, {2, 1.0, 0.5}});
  EXPECT_EQ(slowest.take_text(), "1 (+18.2 %)");
  // A new interval begins.
  EXPECT_EQ(slowest.take_text(), "");
  slowest.add(std::vector<RankTimes>{{3, 2.0, 0}, {3, 1.0, 0}, {3, 1.5, 0}});
  EXPECT_EQ(slowest.take_text(), "0 (+33.3 %)");
}

// A fault that fails it: the last report of a rank counted at every step of the others.
TEST(SlowestRank, AReportCountsOnce) {
  SlowestRank slowest;
  slowest.add(std::vector<RankTimes>{{1, 1.0, 0}, {1, 4.0, 0}});
  slowest.add(std::vector<RankTimes>{{2, 3.0, 0}, {1, 4.0, 0}});
  slowest.add(std::vector<RankTimes>{{3, 8.0, 0}, {2, 1.0, 0}});
  EXPECT_EQ(slowest.take_text(), "0 (+23.1 %)");  // means 4 and 2.5
}

TEST(SlowestRank, OfOneOrNoneSaysNothing) {
  SlowestRank slowest;
  EXPECT_EQ(slowest.take_text(), "");
  slowest.add(std::vector<RankTimes>{{1, 1.0, 0}});
  EXPECT_EQ(slowest.take_text(), "");
  slowest.add(std::vector<RankTimes>{{2, 1.0, 0}, {0, 0, 0}});
  EXPECT_EQ(slowest.take_text(), "");
}

}  // namespace
}  // namespace bev
