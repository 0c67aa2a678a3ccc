#include "launch/elastic_rendezvous.h"

#include <gtest/gtest.h>

namespace bev {
namespace {

using Verdict = RendezvousWait::Verdict;
constexpr RendezvousWait::Limits kTwoToFour{.least = 2, .most = 4, .last_call = 30, .join = 600};

TEST(RendezvousWait, AllAtOnceGo) {
  EXPECT_EQ(RendezvousWait(kTwoToFour, 0).judge(4, 0), Verdict::Go);
}

TEST(RendezvousWait, MoreThanTheMostGo) {
  EXPECT_EQ(RendezvousWait(kTwoToFour, 0).judge(7, 0), Verdict::Go);
}

TEST(RendezvousWait, LastCallBeginsWithTheLeast) {
  RendezvousWait call(kTwoToFour, 100);
  EXPECT_EQ(call.judge(1, 200), Verdict::Wait);
  EXPECT_FALSE(call.is_last_call());
  EXPECT_EQ(call.judge(2, 300), Verdict::Wait);
  EXPECT_TRUE(call.is_last_call());
  EXPECT_EQ(call.judge(3, 329), Verdict::Wait) << "a third does not prolong it";
  EXPECT_EQ(call.judge(3, 330), Verdict::Go);
}

TEST(RendezvousWait, WhoLeavesEndsTheLastCall) {
  RendezvousWait call(kTwoToFour, 0);
  EXPECT_EQ(call.judge(2, 0), Verdict::Wait);
  EXPECT_EQ(call.judge(1, 20), Verdict::Wait);
  EXPECT_FALSE(call.is_last_call());
  EXPECT_EQ(call.judge(2, 31), Verdict::Wait);
  EXPECT_EQ(call.judge(2, 61), Verdict::Go);
}

TEST(RendezvousWait, TooFewAreGivenUp) {
  RendezvousWait call(kTwoToFour, 100);
  EXPECT_EQ(call.judge(1, 699), Verdict::Wait);
  EXPECT_EQ(call.judge(1, 700), Verdict::TooFew);
  EXPECT_EQ(call.judge(2, 700), Verdict::Wait) << "the least have their last call";
}

TEST(RendezvousWait, ThoseWhoCannotDoItWaitForOthers) {
  RendezvousWait call(kTwoToFour, 0);
  EXPECT_EQ(call.judge(3, 0), Verdict::Wait);
  EXPECT_EQ(call.judge(3, 30), Verdict::Go);
  call.refuse(3);
  EXPECT_EQ(call.judge(3, 31), Verdict::Wait);
  EXPECT_EQ(call.judge(4, 32), Verdict::Go);
  EXPECT_EQ(call.judge(3, 600), Verdict::TooFew);
}

}  // namespace
}  // namespace bev
