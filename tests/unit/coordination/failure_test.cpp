// Ranks that fail: what the others learn, and how soon.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <regex>
#include <thread>

#include "base/format.h"
#include "support/expect_error.h"
#include "unit/coordination/job.h"
#include "unit/coordination/processes.h"

namespace bev {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using test::expect_error;
using test::Job;
using test::Processes;

using Codes = std::vector<int>;

// Works until it is killed or learns of a failure.
void work_forever(CoordinationClient& control, const Processes::Say& say) {
  std::vector<int> all;
  for (int rank = 0; rank < control.size(); ++rank) all.push_back(rank);
  control.activity().at_step(17);
  control.activity().begin("all_reduce", 4200000);
  control.barrier(all);
  // A beat has carried the text.
  std::this_thread::sleep_for(milliseconds(300));
  control.barrier(all);
  say(format("rank {} works", control.rank()));
  for (;;) ::pause();
}

TEST(RankFailure, AKilledRankIsNamedAtOnce) {
  Processes ranks(4, {}, work_forever);
  ASSERT_TRUE(ranks.hear("works", 4)) << ranks.heard();
  const auto begin = steady_clock::now();
  ranks.signal(2, SIGKILL);
  ASSERT_TRUE(ranks.hear("learns", 3)) << ranks.heard();
  const auto time = steady_clock::now() - begin;
  EXPECT_LT(time, std::chrono::seconds(2));
  RecordProperty("milliseconds", static_cast<int>(time / milliseconds(1)));
  EXPECT_EQ(ranks.wait(), (Codes{5, 5, 128 + SIGKILL, 5})) << ranks.heard();
  for (const int rank : {0, 1, 3}) {
    EXPECT_NE(ranks.heard().find(format("rank {} learns: rank 2 (host host-2, pid", rank)),
              std::string::npos)
        << ranks.heard();
  }
  // The kernel resets the connection of a process that dies before it has read all it was sent.
  const std::regex loss(
      "is gone: its connection (closed|broke: Connection reset by peer) while all_reduce of 4.2 MB "
      "for");
  EXPECT_TRUE(std::regex_search(ranks.heard(), loss)) << ranks.heard();
}

TEST(RankFailure, TheDeathOfTheFirstRankIsSeenByAll) {
  Processes ranks(3, {}, work_forever);
  ASSERT_TRUE(ranks.hear("works", 3)) << ranks.heard();
  ranks.signal(0, SIGKILL);
  EXPECT_EQ(ranks.wait(), (Codes{128 + SIGKILL, 5, 5})) << ranks.heard();
  for (const int rank : {1, 2}) {
    EXPECT_NE(ranks.heard().find(format("rank {} learns: rank 0 (host host-0, pid", rank)),
              std::string::npos)
        << ranks.heard();
  }
  EXPECT_NE(ranks.heard().find("while all_reduce of 4.2 MB for"), std::string::npos)
      << ranks.heard();
  EXPECT_NE(ranks.heard().find("step 17"), std::string::npos) << ranks.heard();
}

class StoppedRank : public testing::TestWithParam<int> {};

// Every rank that runs says it once, also about the first; and that it is back.
TEST_P(StoppedRank, IsNamedAndHeardOfAgain) {
  const int stopped = GetParam();
  Processes ranks(3, {.silence = 1000}, work_forever);
  ASSERT_TRUE(ranks.hear("works", 3)) << ranks.heard();
  ranks.signal(stopped, SIGSTOP);
  const std::string who = format("notes: rank {} (host host-{}, pid", stopped, stopped);
  EXPECT_TRUE(ranks.hear(who, 2)) << ranks.heard();
  EXPECT_NE(ranks.heard().find("has been silent for 1.0 s; it was doing: all_reduce of 4.2 MB"),
            std::string::npos)
      << ranks.heard();
  ranks.signal(stopped, SIGCONT);
  EXPECT_TRUE(ranks.hear("is heard of again", 2)) << ranks.heard();
  EXPECT_EQ(ranks.heard().find("learns"), std::string::npos) << ranks.heard();
}

TEST_P(StoppedRank, IsGivenUpInTheEnd) {
  const int stopped = GetParam();
  Processes ranks(3, {.silence = 500, .limit = 2000}, work_forever);
  ASSERT_TRUE(ranks.hear("works", 3)) << ranks.heard();
  ranks.signal(stopped, SIGSTOP);
  EXPECT_TRUE(ranks.hear("learns", 2)) << ranks.heard();
  EXPECT_NE(ranks.heard().find(format("learns: rank {} (host host-{}, pid", stopped, stopped)),
            std::string::npos)
      << ranks.heard();
  EXPECT_NE(ranks.heard().find("is gone: it has been silent for 2."), std::string::npos)
      << ranks.heard();
}

INSTANTIATE_TEST_SUITE_P(ControlFailure, StoppedRank, testing::Values(0, 1));

// The process of the first rank may end with the news; all others must have it before.
TEST(RankFailure, AbandonReachesAll) {
  for (const int culprit : {0, 2}) {
    Processes ranks(4, {}, [&](CoordinationClient& control, const Processes::Say&) {
      const std::vector<int> all{0, 1, 2, 3};
      control.barrier(all);
      if (control.rank() == culprit) {
        control.abort("out of memory");
        ::_exit(9);
      }
      for (;;) ::pause();
    });
    Codes expected(4, 5);
    expected[static_cast<size_t>(culprit)] = 9;
    EXPECT_EQ(ranks.wait(), expected) << ranks.heard();
    const std::string who = format("learns: rank {} (host host-{}, pid", culprit, culprit);
    EXPECT_TRUE(ranks.hear(who, 3)) << ranks.heard();
    EXPECT_TRUE(ranks.hear("is gone: out of memory while computing for", 3)) << ranks.heard();
  }
}

// on_failure() is told once, and not of what a rank did itself.
TEST(RankFailure, OnlyTheFirstFailureCounts) {
  Job job(4);
  std::atomic<int> ready = 0;
  job.run([&](CoordinationClient& control) {
    control.barrier(job.all());
    if (control.rank() == 1) control.abort("the first");
    EXPECT_TRUE(job.failures[3].wait_for("the first"));
    ++ready;
    while (ready < 4) std::this_thread::sleep_for(milliseconds(5));
    control.abort("a later one");
    if (control.rank() == 2)
      expect_error(ErrorKind::Comm, "the first", [&] { control.barrier(job.all()); });
  });
  EXPECT_EQ(job.all_errors(), "");
  EXPECT_EQ(job.failures[1].text(), "");
  for (const size_t rank : {0, 2, 3}) {
    EXPECT_EQ(job.failures[rank].all().size(), 1U) << job.failures[rank].text();
    EXPECT_EQ(job.failures[rank].count("rank 1 (host host-1, pid"), 1);
  }
}

TEST(RankFailure, LeavingEarlyIsAFailure) {
  for (const int culprit : {0, 1}) {
    Job job(3);
    job.run([&](CoordinationClient& control) {
      control.barrier(job.all());
      if (control.rank() == culprit) return;
      expect_error(ErrorKind::Comm, format("rank {} (host", culprit),
                   [&] { (void)control.all_gather("never"); });
    });
    EXPECT_EQ(job.all_errors(), "");
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(job.failures[static_cast<size_t>(rank)].count("it left before its work was done"),
                rank == culprit ? 0 : 1)
          << job.all_failures();
    }
  }
}

// Whoever waits in finish() is let go.
TEST(RankFailure, FinishEndsWhenAnotherFails) {
  Job job(3);
  job.run([&](CoordinationClient& control) {
    control.barrier(job.all());
    if (control.rank() == 2) {
      std::this_thread::sleep_for(milliseconds(100));
      control.abort("late");
    } else {
      control.finish();
    }
  });
  EXPECT_EQ(job.all_errors(), "");
  EXPECT_EQ(job.failures[0].count("late"), 1);
  EXPECT_EQ(job.failures[1].count("late"), 1);
}

TEST(RankFailure, FinishEndsAtTheLimit) {
  Job job(2);
  job.change = [](CoordinationClient::Options& o) { o.limit = milliseconds(700); };
  std::atomic<bool> over = false;
  job.run([&](CoordinationClient& control) {
    control.barrier(job.all());
    if (control.rank() == 1) {
      control.finish();  // and leaves while the first works
      over = true;
    } else {
      while (!over) std::this_thread::sleep_for(milliseconds(10));
      std::this_thread::sleep_for(milliseconds(200));
      control.put("still", "here");
      control.finish();
    }
  });
  EXPECT_EQ(job.all_errors(), "");
  EXPECT_EQ(job.all_failures(), "");
}

// A library notices first: the rank that is gone is named, not the one that noticed.
TEST(RankFailure, BlameWaitsForTheNews) {
  Processes ranks(3, {}, [](CoordinationClient& control, const Processes::Say& say) {
    const std::vector<int> all{0, 1, 2};
    control.barrier(all);
    if (control.rank() == 1) {
      say("rank 1 works");
      std::this_thread::sleep_for(milliseconds(150));
      ::raise(SIGKILL);
    }
    control.fail_with("the connection of a library closed");
  });
  EXPECT_EQ(ranks.wait(), (Codes{5, 128 + SIGKILL, 5})) << ranks.heard();
  EXPECT_TRUE(ranks.hear("learns: rank 1 (host host-1", 2)) << ranks.heard();
}

TEST(RankFailure, BlameOfNobodyIsAnOwnFailure) {
  Job job(2);
  job.run([&](CoordinationClient& control) {
    control.barrier(job.all());
    if (control.rank() == 0) {
      expect_error(ErrorKind::Comm, "a library failed",
                   [&] { control.fail_with("a library failed"); });
    } else {
      EXPECT_TRUE(job.failures[1].wait_for("a library failed"));
    }
  });
  EXPECT_EQ(job.all_errors(), "");
  EXPECT_EQ(job.failures[0].text(), "");
  EXPECT_EQ(job.failures[1].count("rank 0 (host host-0"), 1) << job.failures[1].text();
}

}  // namespace
}  // namespace bev
