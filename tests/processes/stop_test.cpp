// A signal that asks for the end ends all ranks alike, with the model written.
#include <gtest/gtest.h>

#include <csignal>
#include <cstring>

#include "base/format.h"
#include "processes/job.h"

namespace bev::test {
namespace {

enum class Target : uint8_t { First, Last, All, Launcher };

struct StopCase {
  Start start;
  Target target;
  int signal;
};

std::string name_of_stop(const testing::TestParamInfo<StopCase>& info) {
  const char* targets[] = {"first", "last", "all", "launcher"};
  return name_of(info.param.start) + "_" + targets[static_cast<size_t>(info.param.target)] + "_" +
         format("SIG{}", ::sigabbrev_np(info.param.signal));
}

class Stopped : public testing::TestWithParam<StopCase> {};

TEST_P(Stopped, AllTogetherWithTheirModel) {
  const auto [start, target, signal] = GetParam();
  if (const std::string why = why_not(start); !why.empty()) GTEST_SKIP() << why;
  Job job(3);
  job.train(start, {"--global-batch-size", "3"});
  ASSERT_TRUE(job.await_training());
  switch (target) {
    case Target::First: job.signal(0, signal); break;
    case Target::Last: job.signal(2, signal); break;
    case Target::All:
      for (const int rank : {0, 1, 2}) job.signal(rank, signal);
      break;
    case Target::Launcher: ::kill(job.children()[0].process, signal); break;
  }
  const auto took = job.await_end(20);
  ASSERT_TRUE(took.has_value()) << job.err();
  std::printf("all had ended after %.2f s\n", *took);
  for (const Child& child : job.children()) EXPECT_EQ(child.code, 0) << job.err();
  EXPECT_EQ(count(job.err(), format("stopped by SIG{} after ", ::sigabbrev_np(signal))), 1)
      << job.err();
  EXPECT_EQ(count(job.err(), "\nwrote "), 1) << job.err();
  EXPECT_TRUE(std::filesystem::exists(job.output() / "model" / "model.safetensors"));
}

INSTANTIATE_TEST_SUITE_P(Of, Stopped,
                         testing::Values(StopCase{Start::Launch, Target::Last, SIGTERM},
                                         StopCase{Start::Launch, Target::Launcher, SIGINT},
                                         StopCase{Start::Launch, Target::Launcher, SIGUSR2},
                                         StopCase{Start::Launch, Target::Launcher, SIGHUP},
                                         StopCase{Start::Mpirun, Target::First, SIGTERM}),
                         name_of_stop);

std::vector<StopCase> stop_cases() {
  std::vector<StopCase> cases;
  for (const Start start : {Start::Launch, Start::Mpirun, Start::Hand})
    for (const Target target : {Target::First, Target::Last, Target::All, Target::Launcher})
      for (const int signal : {SIGTERM, SIGINT}) {
        // By hand there is none, and mpirun has its own ways.
        if (target == Target::Launcher && start != Start::Launch) continue;
        cases.push_back({start, target, signal});
      }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Slow, Stopped, testing::ValuesIn(stop_cases()), name_of_stop);

}  // namespace
}  // namespace bev::test
