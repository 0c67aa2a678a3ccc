// Every test names the fault that makes it fail.
#include "config/sample_ranges.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace bev {
namespace {

// Fails when ranges that touch or overlap stay apart, or others are joined.
TEST(SampleRanges, JoinsWhatTouches) {
  SampleRanges ranges;
  for (const SampleRange& range : {SampleRange{10, 20}, {30, 40}, {5, 5}, {20, 22}, {50, 51}})
    ranges.add(range);
  EXPECT_EQ(ranges.text(), "10-21,30-39,50");
  ranges.add({21, 31});
  EXPECT_EQ(ranges.text(), "10-39,50");
  ranges.add({0, 100});
  EXPECT_EQ(ranges.text(), "0-99");
  EXPECT_EQ(ranges.count(), 100);
}

// Against a set that is walked one by one. Fails when a range is missed, counted twice, or one that
// lies behind the position counts.
TEST(SampleRanges, WalksAroundThem) {
  std::mt19937 random(3);
  const auto below = [&](int64_t n) {
    return std::uniform_int_distribution<int64_t>(0, n - 1)(random);
  };
  for (int round = 0; round < 300; ++round) {
    SampleRanges ranges;
    std::set<int64_t> inside;
    for (int64_t i = below(6); i > 0; --i) {
      const int64_t begin = below(40), end = begin + below(8);
      ranges.add({begin, end});
      for (int64_t sample = begin; sample < end; ++sample) inside.insert(sample);
    }
    EXPECT_EQ(ranges.count(), static_cast<int64_t>(inside.size()));
    EXPECT_EQ(parse_sample_ranges(ranges.text()).ranges, ranges);
    for (int64_t position = 0; position < 50; ++position) {
      int64_t at = position;
      for (int64_t n = 0; n < 20; ++n, ++at) {
        while (inside.contains(at)) ++at;
        ASSERT_EQ(ranges.outside(position, n), at) << ranges.text() << " from " << position;
        if (n == 0) {
          ASSERT_EQ(ranges.next_outside(position), at);
        }
      }
    }
  }
}

// Fails when the last sample is not part of its range, blanks disturb, or nonsense is taken.
TEST(SampleRanges, ReadsText) {
  EXPECT_EQ(parse_sample_ranges("").ranges.count(), 0);
  EXPECT_EQ(parse_sample_ranges(" 7 , 3 - 4,5-5").ranges.list(),
            (std::vector<SampleRange>{{3, 6}, {7, 8}}));
  for (const char* bad :
       {"x", "1-", "-1", "5-4", "1,,2", "1-2-3", "99999999999999999999", "1;2", "0x10", ","})
    EXPECT_FALSE(parse_sample_ranges(bad).why.empty()) << bad;
}

}  // namespace
}  // namespace bev
