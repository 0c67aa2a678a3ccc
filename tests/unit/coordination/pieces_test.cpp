// The parts of the control connection that need no connection.
#include <gtest/gtest.h>

#include "base/activity.h"
#include "coordination/heartbeat_monitor.h"
#include "coordination/job_state.h"
#include "coordination/rank_text.h"
#include "coordination/rendezvous.h"
#include "net/secure_link.h"
#include "support/expect_error.h"

namespace bev {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using test::expect_error;

TEST(RankText, RanksPlacesAndTimes) {
  EXPECT_EQ(ranks_text(std::vector{3}), "rank 3");
  EXPECT_EQ(ranks_text(std::vector{3, 5, 6, 7}), "ranks 3, 5-7");
  EXPECT_EQ(ranks_text(std::vector{0, 1, 9}), "ranks 0, 1, 9");
  EXPECT_EQ(place_text({.rank = 3, .host = "b", .pid = 4711}), "rank 3 (host b, pid 4711)");
  EXPECT_EQ(seconds_text(milliseconds(300)), "0.3 s");
  EXPECT_EQ(seconds_text(seconds(30)), "30 s");
  Failure failure;
  failure.who = {.rank = 3, .host = "b", .pid = 4711};
  failure.doing = "all_reduce of 4.2 MB with ranks 1, 3, step 17";
  failure.why = "its connection closed";
  EXPECT_EQ(failure.text(),
            "rank 3 (host b, pid 4711) is gone: its connection closed while all_reduce of 4.2 MB "
            "with ranks 1, 3, step 17");
}

TEST(Activity, SaysWhatIsDone) {
  Activity activity;
  activity.at_step(17);
  EXPECT_EQ(activity.text(), "computing for 0.0 s, step 17");
  EXPECT_EQ(activity.count(), 0U);
  const std::string peers = "ranks 1, 3";
  activity.begin("all_reduce", 4200000, &peers);
  EXPECT_EQ(activity.text(), "all_reduce of 4.2 MB with ranks 1, 3 for 0.0 s, step 17");
  activity.end();
  activity.begin("barrier");
  EXPECT_EQ(activity.text(), "barrier for 0.0 s, step 17");
  EXPECT_EQ(activity.count(), 2U);
  activity.end();
  EXPECT_EQ(activity.text(), "computing for 0.0 s, step 17");
}

HelloMessage hello(int rank, int size = 4, const std::string& job = "a") {
  return {.rank = rank, .size = size, .job = job, .host = "h", .pid = 1};
}

TEST(RendezvousRoster, LetsInWhoBelongs) {
  RendezvousRoster roster(4, "a");
  EXPECT_EQ(roster.missing_text(), "ranks 0-3 of 4");
  EXPECT_EQ(roster.objection(hello(2)), "");
  roster.join(hello(2));
  EXPECT_EQ(roster.missing_text(), "ranks 0, 1, 3 of 4");
  EXPECT_EQ(roster.objection(hello(2)), "rank 2 (host h, pid 1) is already here");
  EXPECT_NE(roster.objection(hello(4)), "");
  EXPECT_NE(roster.objection(hello(-1)), "");
  EXPECT_NE(roster.objection(hello(1, 5)), "");
  EXPECT_NE(roster.objection(hello(1, 4, "b")), "");
  roster.leave(2);
  EXPECT_EQ(roster.objection(hello(2)), "");
  for (int rank = 0; rank < 4; ++rank) roster.join(hello(rank));
  EXPECT_TRUE(roster.is_complete());
}

TEST(Barrier, EndsWhenAllAreThere) {
  const auto now = steady_clock::now();
  Barrier barrier({1, 4, 6});
  EXPECT_FALSE(barrier.since().has_value());
  barrier.arrive(4, 40, now);
  EXPECT_EQ(barrier.since(), now);
  expect_error(ErrorKind::Comm, "twice", [&] { barrier.arrive(4, 41, now); });
  expect_error(ErrorKind::Comm, "no member", [&] { barrier.arrive(5, 50, now); });
  EXPECT_EQ(barrier.missing(), (std::vector{1, 6}));
  barrier.arrive(6, 60, now);
  barrier.arrive(1, 10, now);
  ASSERT_TRUE(barrier.is_complete());
  const std::vector<Barrier::Arrival> all = barrier.disperse();
  EXPECT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].request, 10U);
  EXPECT_FALSE(barrier.is_complete());
  EXPECT_FALSE(barrier.since().has_value());
}

TEST(KeyValueTable, OneValueForAKey) {
  KeyValueTable keys(20);
  EXPECT_EQ(keys.find("a"), nullptr);
  EXPECT_EQ(keys.put("a", "1"), "");
  EXPECT_EQ(keys.put("a", "1"), "");
  EXPECT_NE(keys.put("a", "2"), "");
  EXPECT_EQ(*keys.find("a"), "1");
  EXPECT_NE(keys.put("b", std::string(18, 'x')).find("too much"), std::string::npos);
  EXPECT_EQ(keys.put("b", std::string(17, 'x')), "");
  const auto now = steady_clock::now();
  keys.wait({.rank = 1, .request = 2, .key = "c", .since = now});
  keys.wait({.rank = 2, .request = 3, .key = "d", .since = now + seconds(1)});
  EXPECT_EQ(keys.take_waits("c").size(), 1U);
  EXPECT_TRUE(keys.take_waits("c").empty());
  EXPECT_TRUE(keys.take_waits_since(now).empty());
  EXPECT_EQ(keys.take_waits_since(now + seconds(1)).size(), 1U);
}

TEST(HeartbeatMonitor, SaysEachThingOnce) {
  using Change = HeartbeatMonitor::Change;
  HeartbeatMonitor watch(seconds(30), seconds(600), seconds(0));
  EXPECT_EQ(watch.look(seconds(29)), Change::None);
  EXPECT_EQ(watch.look(seconds(30)), Change::Late);
  EXPECT_EQ(watch.look(seconds(31)), Change::None);
  EXPECT_EQ(watch.received(seconds(40)), Change::Resumed);
  EXPECT_EQ(watch.received(seconds(41)), Change::None);
  EXPECT_EQ(watch.look(seconds(71)), Change::Late);
  EXPECT_EQ(watch.look(seconds(641)), Change::Lost);
}

// Fails when a process that was stopped believes that all others have been silent.
TEST(HeartbeatMonitor, OwnPausesDoNotCount) {
  AwakeClock awake(seconds(2));
  const auto begin = steady_clock::now() + seconds(1000);
  const auto first = awake.at(begin);
  EXPECT_EQ(awake.at(begin + seconds(1)) - first, seconds(1));
  EXPECT_EQ(awake.at(begin + seconds(3600)) - first, seconds(3));
  EXPECT_EQ(awake.at(begin + seconds(3599)) - first, seconds(3));
  EXPECT_EQ(awake.at(begin + seconds(3601)) - first, seconds(4));
}

TEST(RefusalLog, AreFew) {
  std::vector<std::string> notes;
  RefusalLog refusals([&](const std::string& text) { notes.push_back(text); });
  const auto now = steady_clock::now();
  for (int i = 0; i < 100; ++i) refusals.refused("10.0.0.1:5", "why");
  EXPECT_EQ(notes.size(), 5U);
  EXPECT_EQ(notes.front(), "refused a connection from 10.0.0.1:5: why");
  refusals.tick(now);
  ASSERT_EQ(notes.size(), 6U);
  EXPECT_EQ(notes.back(), "refused 95 more connections");
  refusals.refused("a", "b");
  refusals.tick(now + seconds(9));
  EXPECT_EQ(notes.size(), 6U);
  refusals.tick(now + seconds(10));
  EXPECT_EQ(notes.back(), "refused 1 more connection");
  refusals.tick(now + seconds(30));
  EXPECT_EQ(notes.size(), 7U);
}

}  // namespace
}  // namespace bev
