#include "coordination/coordination_messages.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace bev {
namespace {

using test::expect_error;

std::vector<CoordinationMessage> one_of_each() {
  const RankIdentity place{.rank = 3, .host = "b", .pid = 4711};
  return {HelloMessage{.rank = 1, .size = 4, .job = "j", .host = "h", .pid = 5},
          GroupMessage{{0, 2, 3}},
          AllReduceMaxMessage{.request = 7, .group = 1, .value = -9},
          AllGatherMessage{.request = 8, .value = "v"},
          PutMessage{.request = 9, .key = "k", .value = std::string("\0v", 2)},
          GetMessage{.request = 10, .key = "k"},
          TimesMessage{{.step = 3, .compute = 0.5, .wait = 0.25}},
          AbandonMessage{.why = "w", .doing = "d"},
          FinishMessage{},
          HeartbeatMessage{"computing"},
          RefusedMessage{"no"},
          WaitingMessage{"rank 3 of 4"},
          JoinedMessage{{{.rank = 0, .host = "a", .pid = 1}, {.rank = 1, .host = "b", .pid = 2}}},
          AllReduceMaxReply{.request = 11, .value = 1},
          AllGatherReply{.request = 12, .values = {"a", ""}, .of_rank = {0, 1, 0}},
          PutReply{.request = 13},
          GotMessage{.request = 14, .value = "v"},
          ErrorReply{.request = 15, .is_bug = true, .why = "w"},
          LogMessage{"n"},
          FailedMessage{{.who = place, .doing = "d", .why = "w"}},
          AllFinishedMessage{}};
}

TEST(CoordinationMessages, ComeBackAsTheyWere) {
  const std::vector<CoordinationMessage> all = one_of_each();
  ASSERT_EQ(all.size(), std::variant_size_v<CoordinationMessage::variant>);
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string bytes = encode(all[i]);
    const CoordinationMessage back = decode(bytes);
    EXPECT_EQ(back.index(), i);
    EXPECT_EQ(encode(back), bytes);
  }
  const auto failed = std::get<FailedMessage>(decode(encode(all[19]))).failure;
  EXPECT_EQ(failed.who.rank, 3);
  EXPECT_EQ(failed.who.host, "b");
  EXPECT_EQ(failed.who.pid, 4711);
  EXPECT_EQ(std::get<AllReduceMaxMessage>(decode(encode(all[2]))).value, -9);
  EXPECT_EQ(std::get<TimesMessage>(decode(encode(all[6]))).times.wait, 0.25);
}

// Fails when a reader takes bytes that are not there, or does not look behind the end.
TEST(CoordinationMessages, CutAndPaddedBytesAreRefused) {
  for (const CoordinationMessage& message : one_of_each()) {
    const std::string bytes = encode(message);
    for (size_t size = 0; size < bytes.size(); ++size)
      expect_error(ErrorKind::Comm, "", [&] { (void)decode(bytes.substr(0, size)); });
    expect_error(ErrorKind::Comm, "after the end", [&] { (void)decode(bytes + '\0'); });
  }
  expect_error(ErrorKind::Comm, "unknown type", [] { (void)decode("\xff"); });
}

// What a number promises is compared with what is there before it is allocated.
TEST(CoordinationMessages, CountsAndLengthsAreBounded) {
  const std::string many = "\xff\xff\xff\xff";
  expect_error(ErrorKind::Comm, "entries", [&] { (void)decode("\x01" + many); });
  std::string hello = encode(HelloMessage{});
  hello.replace(9, 4, many);
  expect_error(ErrorKind::Comm, "are the most", [&] { (void)decode(hello); });
  std::string exchanged = encode(AllGatherReply{.request = 1, .values = {"a"}, .of_rank = {0}});
  exchanged[exchanged.size() - 4] = 1;
  expect_error(ErrorKind::Comm, "value 1 of 1", [&] { (void)decode(exchanged); });
}

TEST(CoordinationMessages, LongTextsAreCut) {
  EXPECT_EQ(cut("short"), "short");
  const std::string text = cut(std::string(kTextMost + 1, 'x'));
  EXPECT_EQ(text.size(), kTextMost);
  EXPECT_TRUE(text.ends_with("x ..."));
}

}  // namespace
}  // namespace bev
