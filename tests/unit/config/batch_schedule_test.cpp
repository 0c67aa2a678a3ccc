#include "config/batch_schedule.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace bev {
namespace {

using Points = std::vector<std::pair<int64_t, int64_t>>;

void expect_points(const BatchSchedule& schedule, const Points& points) {
  for (const auto& [consumed, batch] : points) EXPECT_EQ(schedule.at(consumed), batch) << consumed;
}

TEST(BatchSchedule, Constant) {
  const BatchSchedule schedule(32);
  EXPECT_TRUE(schedule.is_constant());
  expect_points(schedule, {{0, 32}, {1, 32}, {1'000'000'000'000, 32}});
  EXPECT_EQ(schedule.steps_in(31), 0);
  EXPECT_EQ(schedule.steps_in(32), 1);
  EXPECT_EQ(schedule.steps_in(100), 3);
}

// Sizes and lengths as Megatron-LM (core 0.12.1) computed them.
TEST(BatchSchedule, RampsAsInMegatron) {
  const BatchSchedule bloom(16, 16, 6'000'000, 1024);
  expect_points(bloom, {{0, 16},
                        {1, 16},
                        {95237, 16},
                        {95238, 16},
                        {95239, 32},
                        {190476, 32},
                        {190477, 48},
                        {285714, 48},
                        {285715, 64},
                        {380953, 80},
                        {2952380, 496},
                        {2952381, 512},
                        {5904761, 992},
                        {5904762, 1008},
                        {5999999, 1008},
                        {6000000, 1024},
                        {6000001, 1024},
                        {12000000, 1024}});
  EXPECT_EQ(bloom.steps_in(300'000'000), 315255);

  const BatchSchedule shorter(16, 16, 5'000'000, 1024);
  expect_points(shorter, {{79365, 16}, {79366, 32}, {238095, 48}, {238096, 64}, {4999999, 1008}});
  EXPECT_EQ(shorter.steps_in(300'000'000), 311541);

  const BatchSchedule small(8, 8, 1000, 64);
  expect_points(small, {{0, 8},
                        {142, 8},
                        {143, 16},
                        {285, 16},
                        {286, 24},
                        {428, 24},
                        {429, 32},
                        {571, 32},
                        {572, 40},
                        {857, 48},
                        {858, 56},
                        {999, 56},
                        {1000, 64},
                        {1001, 64},
                        {2000, 64}});
  EXPECT_EQ(small.steps_in(5000), 109);

  const BatchSchedule tiny(4, 4, 100, 16);
  expect_points(tiny, {{33, 4}, {34, 8}, {66, 8}, {67, 12}, {99, 12}, {100, 16}, {101, 16}});
  EXPECT_EQ(tiny.steps_in(130), 17);

  const BatchSchedule uneven(32, 32, 97, 128);
  expect_points(uneven, {{32, 32}, {33, 64}, {64, 64}, {65, 96}, {96, 96}, {97, 128}});
  EXPECT_EQ(uneven.steps_in(1000), 9);

  const BatchSchedule wide(448, 448, 488280, 2688);
  expect_points(wide, {{97655, 448}, {97656, 896}, {292967, 1344}, {292968, 1792}, {488280, 2688}});
  EXPECT_EQ(wide.steps_in(1'000'000), 688);

  const BatchSchedule fine(16, 8, 300000, 1024);
  expect_points(fine, {{2380, 16}, {2381, 24}, {149999, 512}, {150000, 520}, {299999, 1016}});
  EXPECT_EQ(fine.steps_in(2'000'000), 2979);
}

TEST(BatchSchedule, Borders) {
  EXPECT_TRUE(BatchSchedule(8, 8, 100, 8).is_constant());
  EXPECT_EQ(BatchSchedule(8, 8, 100, 8).at(0), 8);
  const BatchSchedule at_once(2, 2, 0, 8);
  expect_points(at_once, {{0, 8}, {1, 8}});
  EXPECT_EQ(at_once.steps_in(16), 2);
}

// The number of steps is found without taking each of them.
TEST(BatchSchedule, LongRampsAreCountedQuickly) {
  const BatchSchedule longest(1, 1, 1'000'000'000'000'000, 2);
  EXPECT_EQ(longest.steps_in(1'000'000), 1'000'001);
  EXPECT_GT(longest.steps_in(1'000'000'000'000'000), 900'000'000'000'000);
}

}  // namespace
}  // namespace bev
