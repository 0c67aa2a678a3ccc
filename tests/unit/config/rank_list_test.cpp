#include <gtest/gtest.h>

#include "config/parse/notation.h"

namespace bev {
namespace {

TEST(RankList, IsAllOrNumbersAndRanges) {
  const auto all = RankList::parse("all");
  ASSERT_TRUE(all);
  EXPECT_TRUE(all->has(0) && all->has(1 << 20));
  const auto some = RankList::parse("0,2-5,9");
  ASSERT_TRUE(some);
  for (int rank = 0; rank < 12; ++rank)
    EXPECT_EQ(some->has(rank), rank == 0 || (rank >= 2 && rank <= 5) || rank == 9) << rank;
}

TEST(RankList, AnythingElseIsNone) {
  for (const char* text : {"", "a", "1,", ",1", "3-1", "1-", "-1", "1--2", " 1", "1.5", "all,1",
                           "99999999999999999999"})
    EXPECT_FALSE(RankList::parse(text)) << text;
}

}  // namespace
}  // namespace bev
