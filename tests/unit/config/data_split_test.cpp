#include "config/data_split.h"

#include <gtest/gtest.h>

namespace bev {
namespace {

TEST(Split, Weights) {
  EXPECT_EQ(parse_split("969,30,1"), (SplitWeights{969, 30, 1}));
  EXPECT_EQ(parse_split(" 969 , 30 ,\t1 "), (SplitWeights{969, 30, 1}));
  EXPECT_EQ(parse_split("0.9/0.05/0.05"), (SplitWeights{0.9, 0.05, 0.05}));
  EXPECT_EQ(parse_split("99"), (SplitWeights{99, 0, 0}));
  EXPECT_EQ(parse_split("0,1"), (SplitWeights{0, 1, 0}));
  EXPECT_EQ(parse_split("'99,1,0'"), (SplitWeights{99, 1, 0}));
  EXPECT_EQ(parse_split("\"99,1,0\""), (SplitWeights{99, 1, 0}));
  for (const char* text :
       {"",       " ",       ",",      "1,",      "1,,1",   "0",   "0,0,0", "-1,2",
        "1;2",    "1 2",     "a",      "1,2,3,4", "nan",    "inf", "1e999", "1e308,1e308",
        "1,2,3,", "1,2,3 x", "'1,2,3", "1,2'",    "'1,2\"", "''"})
    EXPECT_FALSE(parse_split(text)) << text;
}

// Ends of the three parts as Megatron-LM of 2026 and of 2023 computed them.
TEST(Split, AsInMegatron) {
  struct Case {
    const char* split;
    int64_t sequences;
    std::array<int64_t, 3> main, classic;
  };
  const Case cases[] = {
      {"969, 30, 1", 1, {1, 1, 1}, {1, 1, 1}},
      {"969, 30, 1", 10, {10, 10, 10}, {10, 10, 10}},
      {"969,30,1", 101, {98, 101, 101}, {98, 101, 101}},
      {"969,30,1", 119, {115, 119, 119}, {115, 119, 119}},
      {"969,30,1", 790, {766, 789, 790}, {765, 789, 790}},
      {"969,30,1", 12345, {11962, 12333, 12345}, {11963, 12333, 12345}},
      {"80,10,10", 119, {95, 107, 119}, {95, 107, 119}},
      {"80,10,10", 12345, {9876, 11110, 12345}, {9877, 11111, 12345}},
      {"90,10,0", 119, {107, 119, 119}, {107, 119, 119}},
      {"90,10,0", 12345, {11110, 12345, 12345}, {11111, 12345, 12345}},
      {"100,0,0", 12345, {12345, 12345, 12345}, {12345, 12345, 12345}},
      {"99", 10, {10, 10, 10}, {10, 10, 10}},
      {"98,2,0", 12345, {12098, 12345, 12345}, {12098, 12345, 12345}},
      {"7,3,1", 10, {6, 9, 10}, {6, 9, 10}},
      {"7,3,1", 12345, {7856, 11223, 12345}, {7856, 11223, 12345}},
      {"949,50,1", 10, {9, 10, 10}, {10, 10, 10}},
      {"949,50,1", 12345, {11715, 12333, 12345}, {11716, 12333, 12345}},
      {"1,1,1", 10, {3, 7, 10}, {4, 7, 10}},
      {"1,1,1", 119, {40, 79, 119}, {39, 79, 119}},
      {"0.9/0.05/0.05", 119, {107, 113, 119}, {107, 113, 119}},
      {"0.9/0.05/0.05", 12345, {11110, 11728, 12345}, {11111, 11728, 12345}},
      {"0,1,0", 119, {0, 119, 119}, {0, 119, 119}},
  };
  for (const Case& c : cases) {
    for (const Compat compat : {Compat::Main, Compat::Classic}) {
      const auto& ends = compat == Compat::Main ? c.main : c.classic;
      const auto ranges = split_sequences(*parse_split(c.split), c.sequences, compat);
      int64_t begin = 0;
      for (size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(ranges[i], (SequenceRange{begin, ends[i]})) << c.split << " " << c.sequences;
        begin = ends[i];
      }
    }
  }
}

// Whatever the weights: ranges that follow each other and end with the last sequence.
TEST(Split, PartsCoverTheFile) {
  const SplitWeights weights[] = {{1, 1, 1},        {0, 0.5, 0.5}, {0.5, 0, 0.5},  {0, 0, 1},
                                  {1e-300, 1, 1e9}, {1, 2, 4},     {0.1, 0.2, 0.7}};
  for (const SplitWeights& w : weights) {
    for (int64_t sequences = 0; sequences < 60; ++sequences) {
      for (const Compat compat : {Compat::Main, Compat::Classic}) {
        const auto ranges = split_sequences(w, sequences, compat);
        for (size_t i = 0; i < 3; ++i) {
          EXPECT_LE(ranges[i].begin, ranges[i].end) << sequences;
          EXPECT_EQ(ranges[i].begin, i > 0 ? ranges[i - 1].end : 0) << sequences;
        }
        EXPECT_EQ(ranges[2].end, sequences);
      }
    }
  }
}

}  // namespace
}  // namespace bev
