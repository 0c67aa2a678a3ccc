// A rank that is killed is named by all others, who end at once.
#include <gtest/gtest.h>

#include <csignal>

#include "processes/job.h"

namespace bev::test {
namespace {

struct KillCase {
  Start start;
  std::string layout;
  int rank;
};

std::string name_of_kill(const testing::TestParamInfo<KillCase>& info) {
  return name_of(info.param.start) + "_" + info.param.layout + "_rank" +
         std::to_string(info.param.rank);
}

std::vector<std::string> flags_of(const std::string& layout) {
  if (layout == "dp4") return {};
  return {"--tensor-model-parallel-size", "2", "--pipeline-model-parallel-size", "2"};
}

class Killed : public testing::TestWithParam<KillCase> {};

// One second is what people get; a machine that builds something else at the same time needs more.
constexpr double kSoon = 3;

TEST_P(Killed, TheOthersNameItAndEnd) {
  const auto& [start, layout, killed] = GetParam();
  if (const std::string why = why_not(start); !why.empty()) GTEST_SKIP() << why;
  Job job(4);
  job.train(start, flags_of(layout));
  ASSERT_TRUE(job.await_out(" iteration        3/"));
  pause(1.5);  // every second a rank says what it does
  const pid_t process = job.process_of(killed);
  job.signal(killed, SIGKILL);
  // mpirun itself takes its time.
  const auto took = job.await_end(start == Start::Mpirun ? 10 : kSoon);
  ASSERT_TRUE(took.has_value()) << "processes are left\n" << job.err();
  std::printf("all had ended %.2f s after the kill\n", *took);
  const std::string words = "rank " + std::to_string(killed) + " (host ";
  const std::string who = ", pid " + std::to_string(process) + ") is gone: ";
  for (int rank = 0; rank < job.ranks(); ++rank) {
    if (rank == killed) continue;
    const std::string begin = "bevatron: error: rank " + std::to_string(rank) + ": " + words;
    EXPECT_EQ(count(job.err(), begin), 1) << job.err();
    EXPECT_NE(job.log(rank).find(begin), std::string::npos) << job.log(rank);
  }
  EXPECT_EQ(count(job.err(), who), 3) << job.err();
  // What it was doing, and in which step; what it said last may be a second old.
  EXPECT_EQ(count(job.err(), " s, step "), 3) << job.err();
  EXPECT_EQ(count(job.err(), " s, step 0\n"), 0) << job.err();
  EXPECT_EQ(count(job.err(), "(communication error, exit code 5)"), 3) << job.err();
  const std::vector<Child>& children = job.children();
  if (start == Start::Launch) {
    EXPECT_EQ(children[0].code, 128 + SIGKILL) << job.err();
    EXPECT_NE(job.err().find("rank " + std::to_string(killed) + " (process " +
                             std::to_string(process) + ") failed first: killed by signal 9"),
              std::string::npos)
        << job.err();
  }
  if (start == Start::Hand) {
    for (int rank = 0; rank < job.ranks(); ++rank)
      EXPECT_EQ(children[static_cast<size_t>(rank)].code, rank == killed ? 128 + SIGKILL : 5);
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Killed,
                         testing::Values(KillCase{Start::Launch, "dp4", 0},
                                         KillCase{Start::Hand, "tp2_pp2", 3},
                                         KillCase{Start::Mpirun, "dp4", 1}),
                         name_of_kill);

std::vector<KillCase> all_cases() {
  std::vector<KillCase> cases;
  for (const Start start : {Start::Launch, Start::Mpirun, Start::Hand})
    for (const char* layout : {"dp4", "tp2_pp2"})
      for (const int rank : {0, 1, 2, 3}) cases.push_back({start, layout, rank});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Slow, Killed, testing::ValuesIn(all_cases()), name_of_kill);

}  // namespace
}  // namespace bev::test
