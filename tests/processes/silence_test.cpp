// A rank that stands still is named, and ends the job when it stands for too long.
#include <gtest/gtest.h>

#include <csignal>

#include "processes/job.h"

namespace bev::test {
namespace {

// Named after a second, given up after six.
const std::vector<std::string> kShort{"--parallel.heartbeat_warning_seconds", "1",
                                      "--parallel.timeout_minutes", "0.1"};

struct SilenceCase {
  Start start;
  int rank;
};

std::string name_of_case(const testing::TestParamInfo<SilenceCase>& info) {
  return name_of(info.param.start) + "_rank" + std::to_string(info.param.rank);
}

class Silent : public testing::TestWithParam<SilenceCase> {
 protected:
  void SetUp() override {
    if (const std::string why = why_not(GetParam().start); !why.empty()) GTEST_SKIP() << why;
  }
  static std::string named(const Job& job, int rank) {
    return "rank " + std::to_string(rank) + " (host " + host() + ", pid " +
           std::to_string(job.process_of(rank)) + ")";
  }
  static std::string host() {
    char name[256] = {};
    ::gethostname(name, sizeof name - 1);
    return name;
  }
};

TEST_P(Silent, ForTooLongEndsTheJob) {
  const auto [start, silent] = GetParam();
  Job job(3);
  job.train(start, kShort + std::vector<std::string>{"--global-batch-size", "3"});
  ASSERT_TRUE(job.await_training());
  const std::string name = named(job, silent);
  job.signal(silent, SIGSTOP);
  const double stopped = seconds_now();
  ASSERT_TRUE(job.await_err(name + " has been silent for 1."));
  std::printf("named after %.2f s\n", seconds_now() - stopped);
  EXPECT_LT(seconds_now() - stopped, 4);
  EXPECT_NE(job.err().find("; it was doing: "), std::string::npos);
  ASSERT_TRUE(job.await_err(name + " is gone: it has been silent for 6."));
  std::printf("given up after %.2f s\n", seconds_now() - stopped);
  EXPECT_GT(seconds_now() - stopped, 4);
  // A stopped process takes no SIGTERM: the launcher kills it.
  if (start == Start::Hand) {
    pause(1);
    job.signal(silent, SIGKILL);
  }
  ASSERT_TRUE(job.await_end(20)) << job.err();
  for (int rank = 0; rank < job.ranks(); ++rank) {
    if (rank == silent) continue;
    EXPECT_EQ(count(job.err(), "bevatron: error: rank " + std::to_string(rank) + ": " + name), 1)
        << job.err();
    if (start == Start::Hand) {
      EXPECT_EQ(job.children()[static_cast<size_t>(rank)].code, 5);
    }
  }
  if (start == Start::Launch) {
    EXPECT_EQ(job.children()[0].code, 5) << job.err();
  }
}

TEST_P(Silent, AndHeardOfAgainChangesNothing) {
  const auto [start, silent] = GetParam();
  const std::vector<std::string> brief{"--train-iters", "400", "--global-batch-size", "2",
                                       "--eval-iters",  "0"};
  Job undisturbed(2), job(2);
  undisturbed.train(start, kShort + brief);
  ASSERT_TRUE(undisturbed.await_end(60)) << undisturbed.err();
  job.train(start, kShort + brief);
  ASSERT_TRUE(job.await_training());
  const std::string name = named(job, silent);
  job.signal(silent, SIGSTOP);
  ASSERT_TRUE(job.await_err(name + " has been silent for "));
  job.signal(silent, SIGCONT);
  ASSERT_TRUE(job.await_err(name + " is heard of again"));
  ASSERT_TRUE(job.await_end(60)) << job.err();
  for (const Child& child : job.children()) EXPECT_EQ(child.code, 0) << job.err();
  EXPECT_NE(last_loss(job.out()), "");
  EXPECT_EQ(last_loss(job.out()), last_loss(undisturbed.out()));
}

const auto kQuick = testing::Values(SilenceCase{Start::Hand, 1});
const auto kAll = testing::Values(SilenceCase{Start::Launch, 0}, SilenceCase{Start::Launch, 1},
                                  SilenceCase{Start::Hand, 0}, SilenceCase{Start::Mpirun, 0},
                                  SilenceCase{Start::Mpirun, 1});
INSTANTIATE_TEST_SUITE_P(Of, Silent, kQuick, name_of_case);
INSTANTIATE_TEST_SUITE_P(Slow, Silent, kAll, name_of_case);

TEST(Absent, IsNamedByThoseWhoWait) {
  if (const std::string why = why_not(Start::Hand); !why.empty()) GTEST_SKIP() << why;
  Job job(3);
  const std::vector<std::string> flags{"--parallel.timeout_minutes", "0.08", "--global-batch-size",
                                       "3"};
  job.train_rank(0, flags);
  job.train_rank(2, flags);
  ASSERT_TRUE(job.await_end(20)) << job.err();
  for (const Child& child : job.children()) EXPECT_EQ(child.code, 5) << job.err();
  EXPECT_EQ(count(job.err(), "rank 1 of 3 did not join within 4.8 s"), 2) << job.err();
  // And while it waits.
  EXPECT_NE(job.err().find("waiting for rank 1 of 3"), std::string::npos) << job.err();
}

}  // namespace
}  // namespace bev::test
