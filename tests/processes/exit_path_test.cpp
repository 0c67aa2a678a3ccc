// Every way a training ends before it is complete: it saves, says so for scripts, and the training
// that goes on from there ends as one that nobody disturbed.
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

#include "base/file.h"
#include "base/format.h"
#include "processes/saved_run.h"

namespace bev::test {
namespace {

struct ExitPath {
  const char* name;
  std::vector<std::string> flags;  // that end it
  const char* reason;              // as the record says it
  std::vector<std::string> later;  // flags of the run that goes on
  int code = 0;
  int64_t done = 0;  // iterations; 0: nobody knows
};

std::vector<ExitPath> exit_paths() {
  return {{"interval", {"--exit-interval", "4"}, "stopped by train.exit_interval", {}, 0, 4},
          {"after", {"--train.exit_after", "3"}, "stopped by train.exit_after", {}, 0, 3},
          {"samples", {"--exit-samples", "770"}, "stopped by train.exit_samples", {}, 0, 4},
          {"duration",
           {"--exit-duration-in-mins", "0.0001"},
           "stopped by train.exit_minutes",
           {},
           0,
           1},
          {"control", {}, "stopped by the control folder", {}},
          {"signal", {}, "stopped by SIGUSR1", {}},
          {"guard",
           {"--guard.norm_spike", "stop", "--guard.norm_deviations", "1", "--guard.warmup", "2"},
           "stopped by a spike",
           {"--guard.norm_spike", "ignore"},
           6}};
}

constexpr int64_t kExitIterations = 12;
// So that a step takes long enough to be met.
const std::vector<std::string> kFlags{"--eval-iters",       "0",     "--global-batch-size", "256",
                                      "--guard.norm_spike", "ignore"};

class ExitPaths : public testing::TestWithParam<std::tuple<Ranks, ExitPath>> {};

std::string name_of_exit(const testing::TestParamInfo<std::tuple<Ranks, ExitPath>>& info) {
  return name_of(std::get<0>(info.param)) + "_" + std::get<1>(info.param).name;
}

TEST_P(ExitPaths, SaveAndGoOn) {
  const auto& [ranks, path] = GetParam();
  if (const std::string why = why_not(ranks); !why.empty()) GTEST_SKIP() << why;
  const std::string name = path.name;
  const SavedRun& whole = undisturbed(ranks, kExitIterations, kFlags);
  const SavedRun run(ranks, kExitIterations, kFlags);
  Job job(2);
  run.start(job, path.flags + std::vector<std::string>{"--save-interval", "0"});
  if (name == "control" || name == "signal") {
    ASSERT_TRUE(job.await_out(" iteration        1/", 60));
    if (name == "signal") {
      ::kill(job.children().front().process, SIGUSR1);
    } else {
      std::ofstream(run.output() / "control" / "stop");
    }
  }
  ASSERT_TRUE(job.await_end(60).has_value()) << job.err();
  EXPECT_EQ(*job.children().front().code, path.code) << job.err();
  const int64_t done = run.newest_good();
  EXPECT_GT(done, 0);
  EXPECT_LT(done, kExitIterations);
  if (path.done > 0) {
    EXPECT_EQ(done, path.done);
  }
  const std::string line =
      format("run ended | reason: {} | iteration: {}/{} | checkpoint: {} | complete: no |",
             path.reason, done, kExitIterations, run.place_of(done).string());
  EXPECT_EQ(count(job.out(), line), 1u) << job.out() << line;
  EXPECT_TRUE(read_text(run.output() / "status.json").find(path.reason) != std::string::npos ||
              path.code != 0)
      << read_text(run.output() / "status.json");
  EXPECT_FALSE(std::filesystem::exists(run.output() / "control" / "stop"));
  std::string err;
  EXPECT_EQ(run.run(path.later + std::vector<std::string>{"--save-interval", "0"}, &err), 0) << err;
  expect_same_end(run, whole);
}

INSTANTIATE_TEST_SUITE_P(Of, ExitPaths,
                         testing::Combine(testing::Values(Ranks::Threads),
                                          testing::ValuesIn(exit_paths())),
                         name_of_exit);
INSTANTIATE_TEST_SUITE_P(Slow, ExitPaths,
                         testing::Combine(testing::Values(Ranks::Launch),
                                          testing::ValuesIn(exit_paths())),
                         name_of_exit);

}  // namespace
}  // namespace bev::test
