// What ranks agree on while all is well. Every rank is a thread.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>

#include "base/format.h"
#include "support/expect_error.h"
#include "unit/coordination/job.h"

namespace bev {
namespace {

using std::chrono::milliseconds;
using test::expect_error;
using test::Job;

TEST(CoordinationClient, RanksKnowEachOther) {
  Job job(4);
  job.run([&](CoordinationClient& control) {
    EXPECT_EQ(control.size(), 4);
    for (int rank = 0; rank < 4; ++rank) {
      EXPECT_EQ(control.place(rank).rank, rank);
      EXPECT_EQ(control.place(rank).host, format("host-{}", rank));
      EXPECT_EQ(control.place(rank).pid, ::getpid());
    }
    control.finish();
  });
  EXPECT_EQ(job.all_errors(), "");
  EXPECT_EQ(job.all_failures(), "");
}

TEST(CoordinationClient, ExchangeGivesAllByRank) {
  Job job(5);
  job.run([&](CoordinationClient& control) {
    for (int round = 0; round < 20; ++round) {
      // Some are the same.
      const auto value = [&](int rank) { return format("{} of round {}", rank / 2, round); };
      const std::vector<std::string> all = control.all_gather(value(control.rank()));
      ASSERT_EQ(all.size(), 5U);
      for (int rank = 0; rank < 5; ++rank) EXPECT_EQ(all[static_cast<size_t>(rank)], value(rank));
    }
    control.finish();
  });
  EXPECT_EQ(job.all_errors(), "");
}

// More than fits in a frame or in the buffers of a socket.
TEST(CoordinationClient, BigExchange) {
  Job job(4);
  job.run([&](CoordinationClient& control) {
    const auto value = [](int rank) {
      return std::string(static_cast<size_t>(1000000 + rank), static_cast<char>('a' + rank));
    };
    const std::vector<std::string> all = control.all_gather(value(control.rank()));
    for (int rank = 0; rank < 4; ++rank) EXPECT_TRUE(all[static_cast<size_t>(rank)] == value(rank));
    EXPECT_EQ(control.all_gather("").size(), 4U);
    control.finish();
  });
  EXPECT_EQ(job.all_errors(), "");
}

TEST(CoordinationClient, MoreThanAnExchangeMayCarryIsRefused) {
  Job job(1);
  job.run([&](CoordinationClient& control) {
    expect_error(ErrorKind::Internal, "268435456",
                 [&] { (void)control.all_gather(std::string((size_t{256} << 20) + 1, 'x')); });
    control.finish();
  });
  EXPECT_EQ(job.all_errors(), "");
}

TEST(CoordinationClient, LargestOfManyGroupsAtOnce) {
  Job job(6);
  job.run([&](CoordinationClient& control) {
    const int me = control.rank();
    const std::vector<int> halves = me < 3 ? std::vector{0, 1, 2} : std::vector{3, 4, 5};
    const std::vector<int> parity = me % 2 == 0 ? std::vector{0, 2, 4} : std::vector{1, 3, 5};
    const std::vector<int> own{me};
    const std::vector<int> pair = {me / 2 * 2, me / 2 * 2 + 1};
    for (int64_t round = 0; round < 100; ++round) {
      // Ranks differ in how many agreements with others lie in between.
      for (int64_t i = 0; i < me / 2; ++i)
        EXPECT_EQ(control.all_reduce_max(pair, -me), -me / 2 * 2);
      EXPECT_EQ(control.all_reduce_max(halves, round - me), round - halves[0]);
      EXPECT_EQ(control.all_reduce_max(parity, round + me), round + parity[2]);
      EXPECT_EQ(control.all_reduce_max(own, round), round);
    }
    control.barrier(job.all());
    control.finish();
  });
  EXPECT_EQ(job.all_errors(), "");
}

TEST(CoordinationClient, GroupsWithoutThisRankAreABug) {
  Job job(2);
  job.run([&](CoordinationClient& control) {
    const std::vector<int> wrong[] = {{1 - control.rank()}, {}, {1, 0}, {0, 1, 2}, {-1, 0, 1}};
    for (const std::vector<int>& ranks : wrong)
      expect_error(ErrorKind::Internal, "meets ranks",
                   [&] { (void)control.all_reduce_max(ranks, 0); });
    control.finish();
  });
  EXPECT_EQ(job.all_errors(), "");
}

// Several threads of one rank may be in agreements of different groups.
TEST(CoordinationClient, ThreadsOfARankMeetDifferentGroups) {
  Job job(2);
  job.run([&](CoordinationClient& control) {
    const std::vector<int> ranks{0, 1};
    std::thread other([&] {
      for (int i = 0; i < 50; ++i) {
        control.put(format("{} {}", control.rank(), i), format("{}", i));
        EXPECT_EQ(control.get(format("{} {}", 1 - control.rank(), i)), format("{}", i));
      }
    });
    for (int i = 0; i < 50; ++i)
      EXPECT_EQ(control.all_reduce_max(ranks, i + control.rank()), i + 1);
    other.join();
    control.finish();
  });
  EXPECT_EQ(job.all_errors(), "");
}

TEST(CoordinationClient, GetWaitsForPut) {
  Job job(3);
  job.run([&](CoordinationClient& control) {
    if (control.rank() == 1) {
      std::this_thread::sleep_for(milliseconds(100));
      control.put("key", std::string("a\0b", 3));
      control.put("key", std::string("a\0b", 3));
    }
    EXPECT_EQ(control.get("key"), std::string("a\0b", 3));
    if (control.rank() == 2)
      expect_error(ErrorKind::Internal, "another value", [&] { control.put("key", "c"); });
    control.finish();
  });
  EXPECT_EQ(job.all_errors(), "");
}

TEST(CoordinationClient, TheFirstRankKnowsTheTimesOfAll) {
  Job job(3);
  job.run([&](CoordinationClient& control) {
    EXPECT_TRUE(control.rank() != 0 || control.times().at(2).step == 0);
    control.barrier(job.all());
    control.report_times({.step = 6, .compute = 9, .wait = 9});
    control.report_times({.step = 7, .compute = 0.5 + control.rank(), .wait = 0.25});
    control.barrier(job.all());
    if (control.rank() == 0) {
      const std::vector<RankTimes> times = control.times();
      ASSERT_EQ(times.size(), 3U);
      for (int rank = 0; rank < 3; ++rank) {
        EXPECT_EQ(times[static_cast<size_t>(rank)].step, 7);
        EXPECT_EQ(times[static_cast<size_t>(rank)].compute, 0.5 + rank);
      }
    } else {
      expect_error(ErrorKind::Internal, "first rank only", [&] { (void)control.times(); });
    }
    control.finish();
  });
  EXPECT_EQ(job.all_errors(), "");
}

// Whoever waits too long learns for whom, and what that one was doing.
TEST(CoordinationClient, AWaitThatIsTooLongNamesTheMissing) {
  Job job(3);
  job.change = [](CoordinationClient::Options& o) { o.limit = milliseconds(400); };
  std::atomic<int> left = 2;
  job.run([&](CoordinationClient& control) {
    if (control.rank() == 1) {
      control.activity().at_step(17);
      control.activity().begin("checkpoint");
    } else {
      expect_error(ErrorKind::Comm,
                   "among ranks 0-2 has waited 0.4 s for rank 1: rank 1 (host host-1, pid",
                   [&] { (void)control.all_reduce_max(job.all(), 1); });
      const std::string message =
          expect_error(ErrorKind::Comm, "checkpoint for", [&] { (void)control.all_gather("a"); });
      EXPECT_NE(message.find("step 17"), std::string::npos) << message;
      expect_error(ErrorKind::Comm, "no rank has put key 'k'", [&] { (void)control.get("k"); });
      --left;
    }
    // Who leaves early is named instead of who is missing.
    while (left > 0) std::this_thread::sleep_for(milliseconds(10));
  });
  EXPECT_EQ(job.all_errors(), "");
}

// A rank that has finished may go while others work; the first serves until the last has.
TEST(CoordinationClient, FinishInAnyOrder) {
  for (const int last : {0, 1, 2}) {
    Job job(3);
    std::atomic<int> ended = 0;
    job.run([&](CoordinationClient& control) {
      control.barrier(job.all());
      if (control.rank() == last) {
        std::this_thread::sleep_for(milliseconds(200));
        const std::vector<int> own{last};
        control.put("late", "value");
        EXPECT_EQ(control.get("late"), "value");
        EXPECT_EQ(ended, 0);
      }
      control.finish();
      ++ended;
    });
    EXPECT_EQ(job.all_errors(), "");
    EXPECT_EQ(job.all_failures(), "") << last;
  }
}

TEST(CoordinationClient, OneRankAlone) {
  Job job(1);
  job.run([&](CoordinationClient& control) {
    EXPECT_EQ(control.all_gather("a"), std::vector<std::string>{"a"});
    EXPECT_EQ(control.all_reduce_max(job.all(), 5), 5);
    control.finish();
  });
  EXPECT_EQ(job.all_errors(), "");
}

}  // namespace
}  // namespace bev
