#include <gtest/gtest.h>

#include "launch/elastic_supervisor.h"

namespace bev {
namespace {

using Verdict = RollCall::Verdict;
constexpr RollCall::Limits kTwoToFour{.least = 2, .most = 4, .last_call = 30, .join = 600};

TEST(RollCall, AllAtOnceGo) { EXPECT_EQ(RollCall(kTwoToFour, 0).judge(4, 0), Verdict::Go); }

TEST(RollCall, MoreThanTheMostGo) { EXPECT_EQ(RollCall(kTwoToFour, 0).judge(7, 0), Verdict::Go); }

TEST(RollCall, LastCallBeginsWithTheLeast) {
  RollCall call(kTwoToFour, 100);
  EXPECT_EQ(call.judge(1, 200), Verdict::Wait);
  EXPECT_FALSE(call.is_last_call());
  EXPECT_EQ(call.judge(2, 300), Verdict::Wait);
  EXPECT_TRUE(call.is_last_call());
  EXPECT_EQ(call.judge(3, 329), Verdict::Wait) << "a third does not prolong it";
  EXPECT_EQ(call.judge(3, 330), Verdict::Go);
}

TEST(RollCall, WhoLeavesEndsTheLastCall) {
  RollCall call(kTwoToFour, 0);
  EXPECT_EQ(call.judge(2, 0), Verdict::Wait);
  EXPECT_EQ(call.judge(1, 20), Verdict::Wait);
  EXPECT_FALSE(call.is_last_call());
  EXPECT_EQ(call.judge(2, 31), Verdict::Wait);
  EXPECT_EQ(call.judge(2, 61), Verdict::Go);
}

TEST(RollCall, TooFewAreGivenUp) {
  RollCall call(kTwoToFour, 100);
  EXPECT_EQ(call.judge(1, 699), Verdict::Wait);
  EXPECT_EQ(call.judge(1, 700), Verdict::TooFew);
  EXPECT_EQ(call.judge(2, 700), Verdict::Wait) << "the least have their last call";
}

TEST(RollCall, ThoseWhoCannotDoItWaitForOthers) {
  RollCall call(kTwoToFour, 0);
  EXPECT_EQ(call.judge(3, 0), Verdict::Wait);
  EXPECT_EQ(call.judge(3, 30), Verdict::Go);
  call.refuse(3);
  EXPECT_EQ(call.judge(3, 31), Verdict::Wait);
  EXPECT_EQ(call.judge(4, 32), Verdict::Go);
  EXPECT_EQ(call.judge(3, 600), Verdict::TooFew);
}

}  // namespace
}  // namespace bev
