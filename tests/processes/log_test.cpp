// Which ranks print, and that all write logs.
#include <gtest/gtest.h>

#include <algorithm>

#include "processes/job.h"

namespace bev::test {
namespace {

struct LogCase {
  std::string ranks;
  std::vector<int> printing;
};

class Logs : public testing::TestWithParam<LogCase> {};

TEST_P(Logs, OfTheRanksThatAreAskedForArePrinted) {
  if (const std::string why = why_not(Start::Launch); !why.empty()) GTEST_SKIP() << why;
  Job job(3);
  job.train(Start::Launch, {"--log.ranks", GetParam().ranks, "--train-iters", "3", "--eval-iters",
                            "0", "--global-batch-size", "3"});
  ASSERT_TRUE(job.await_end(20)) << job.err();
  EXPECT_EQ(job.children()[0].code, 0) << job.err();
  EXPECT_EQ(count(job.out(), " iteration        2/"), GetParam().printing.size()) << job.out();
  for (int rank = 0; rank < job.ranks(); ++rank) {
    const bool prints = std::count(GetParam().printing.begin(), GetParam().printing.end(), rank);
    const std::string binding = "          rank " + std::to_string(rank) + ": CPU";
    EXPECT_EQ(count(job.err(), binding), prints ? 1 : 0) << job.err();
    EXPECT_EQ(count(job.log(rank), binding), 1) << job.log(rank);
    EXPECT_EQ(count(job.log(rank), " iteration        2/"), 1) << job.log(rank);
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Logs,
                         testing::Values(LogCase{"all", {0, 1, 2}}, LogCase{"0,2", {0, 2}}),
                         [](const auto& each) { return "ranks" + std::to_string(each.index); });

}  // namespace
}  // namespace bev::test
