// A signal that asks for the end, in each phase of a training: what was trained is saved, and the
// training that goes on from it ends as one that nobody disturbed.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <random>

#include "base/format.h"
#include "processes/saved_run.h"

namespace bev::test {
namespace {

enum class Phase : uint8_t { Loading, FirstStep, Step, Evaluation, Saving, LastSave };

struct StopSaveCase {
  Ranks ranks;
  Phase phase;
  int signal;
};

constexpr const char* kPhases[] = {"loading",    "first_step", "step",
                                   "evaluation", "saving",     "last_save"};

std::string name_of_signal(int signal) { return format("SIG{}", ::sigabbrev_np(signal)); }

std::string name_of_stop_save(const testing::TestParamInfo<StopSaveCase>& info) {
  return name_of(info.param.ranks) + "_" + kPhases[static_cast<size_t>(info.param.phase)] + "_" +
         name_of_signal(info.param.signal);
}

constexpr int64_t kStoppedIterations = 10;

// So that most of the time is the phase's.
std::vector<std::string> flags_of(Phase phase) {
  switch (phase) {
    case Phase::Loading:
    case Phase::FirstStep: return {"--eval-iters", "0"};
    case Phase::Step: return {"--eval-iters", "0", "--global-batch-size", "256"};
    case Phase::Evaluation: return {"--eval-iters", "40", "--eval-interval", "1"};
    case Phase::Saving:
    case Phase::LastSave: return {"--eval-iters", "2", "--eval-interval", "3"};
  }
  return {};
}

// Seen before the signal is sent.
std::string mark_of(Phase phase) {
  switch (phase) {
    case Phase::Loading:
    case Phase::FirstStep: return "";
    case Phase::Step: return " iteration        1/";
    case Phase::Evaluation: return "validation loss at iteration 1 ";
    case Phase::Saving: return "saving checkpoint at iteration       2 ";
    case Phase::LastSave: return "saving checkpoint at iteration      10 ";
  }
  return "";
}

class StoppedSaving : public testing::TestWithParam<StopSaveCase> {
 protected:
  // The launcher hears one of the signals, a rank that is not the first the other.
  static pid_t target(const Job& job, pid_t first) {
    const bool is_of_rank = GetParam().ranks == Ranks::Launch && GetParam().signal == SIGTERM;
    const pid_t rank = is_of_rank ? job.process_of(1) : -1;
    return rank > 0 ? rank : first;
  }
};

TEST_P(StoppedSaving, SavesAndGoesOn) {
  const auto [ranks, phase, signal] = GetParam();
  if (const std::string why = why_not(ranks); !why.empty()) GTEST_SKIP() << why;
  const std::vector<std::string> flags = flags_of(phase);
  const SavedRun& whole = undisturbed(ranks, kStoppedIterations, flags);
  const SavedRun run(ranks, kStoppedIterations, flags);
  Job job(2);
  std::mt19937 random(7);
  run.start(job, {"--save-interval", phase == Phase::Saving ? "1" : "0"});
  const pid_t first = job.children().front().process;
  if (phase == Phase::FirstStep) {
    const auto metrics = run.output() / "metrics.jsonl";
    for (const double until = seconds_now() + 30; seconds_now() < until; pause(0.001))
      if (std::filesystem::exists(metrics) && std::filesystem::file_size(metrics) > 0) break;
  } else if (!mark_of(phase).empty()) {
    ASSERT_TRUE(job.await_out(mark_of(phase), 60));
  }
  pause(std::uniform_real_distribution<>(0, 0.03)(random));
  ::kill(target(job, first), signal);
  ASSERT_TRUE(job.await_end(60).has_value()) << job.err();
  const int code = *job.children().front().code;
  const std::string stopped = format("stopped by {} after ", name_of_signal(signal));
  const bool has_stopped = count(job.err(), stopped) == 1;
  // Processes that have not met yet end alone, and those that wait for them miss them.
  const bool began =
      count(job.out(), "before the training began") == 0 && code != 5 && code != 128 + signal;
  const int64_t done = has_stopped ? last_number(job.err(), stopped)
                       : began     ? kStoppedIterations
                                   : 0;
  std::printf("exit code %d, %lld iterations were done\n", code, static_cast<long long>(done));
  if (began) {
    EXPECT_EQ(code, 0) << job.err();
    EXPECT_EQ(count(job.out(), "run ended | reason: "), 1u) << job.out();
    EXPECT_EQ(
        count(job.out(), format("exiting program after receiving {}.\n", name_of_signal(signal))),
        has_stopped ? 1u : 0u);
  } else {
    EXPECT_EQ(phase, Phase::Loading);
    // A program that has hardly been loaded ends as the system ends it.
    EXPECT_TRUE(code == 0 || code == 128 + signal || (ranks == Ranks::Launch && code == 5))
        << code << "\n"
        << job.err();
  }
  // Before anything is trained there is nothing to save.
  if (done == 0) {
    EXPECT_EQ(run.newest_good(), 0);
    EXPECT_FALSE(std::filesystem::exists(run.output() / "model"));
  } else {
    EXPECT_EQ(run.newest_good(), done) << job.err();
    EXPECT_TRUE(std::filesystem::exists(run.output() / "model" / "model.safetensors"));
    expect_no_leftovers(run.checkpoints());
  }
  std::string err;
  EXPECT_EQ(run.run({"--save-interval", "0"}, &err), 0) << err;
  expect_same_end(run, whole);
}

INSTANTIATE_TEST_SUITE_P(Of, StoppedSaving,
                         testing::Values(StopSaveCase{Ranks::Threads, Phase::Loading, SIGTERM},
                                         StopSaveCase{Ranks::Threads, Phase::FirstStep, SIGUSR1},
                                         StopSaveCase{Ranks::Threads, Phase::Step, SIGTERM},
                                         StopSaveCase{Ranks::Threads, Phase::Evaluation, SIGINT},
                                         StopSaveCase{Ranks::Launch, Phase::Loading, SIGUSR1},
                                         StopSaveCase{Ranks::Launch, Phase::Evaluation, SIGUSR1},
                                         StopSaveCase{Ranks::Launch, Phase::Saving, SIGTERM},
                                         StopSaveCase{Ranks::Launch, Phase::LastSave, SIGINT}),
                         name_of_stop_save);

std::vector<StopSaveCase> stop_save_cases() {
  std::vector<StopSaveCase> cases;
  for (const Ranks ranks : {Ranks::Threads, Ranks::Launch})
    for (const Phase phase : {Phase::Loading, Phase::FirstStep, Phase::Step, Phase::Evaluation,
                              Phase::Saving, Phase::LastSave})
      for (const int signal : {SIGTERM, SIGUSR1, SIGINT}) cases.push_back({ranks, phase, signal});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Slow, StoppedSaving, testing::ValuesIn(stop_save_cases()),
                         name_of_stop_save);

// Asked to end while another rank is dead: nothing can be saved, and nothing half is shown.
TEST(StoppedBesideAKilledRank, EndsWithoutAHalfCheckpoint) {
  if (const std::string why = why_not(Start::Hand); !why.empty()) GTEST_SKIP() << why;
  const SavedRun saved(Ranks::Launch, 1);
  Job job(2);
  job.train(Start::Hand, {"--save", saved.checkpoints().string(), "--save-interval", "1",
                          "--checkpoint.keep", "2", "--eval-iters", "0"});
  ASSERT_TRUE(job.await_out("successfully saved checkpoint at iteration       2 "));
  const pid_t survivor = job.process_of(0);
  ASSERT_GT(survivor, 0) << job.err();
  job.signal(1, SIGKILL);
  ::kill(survivor, SIGTERM);  // it may have noticed the other's end, and have ended, by now
  ASSERT_TRUE(job.await_end(30).has_value()) << job.err();
  EXPECT_EQ(job.children()[0].code, 5) << job.err();
  EXPECT_EQ(job.children()[1].code, 128 + SIGKILL) << job.err();
  EXPECT_EQ(count(job.err(), "stopped by SIGTERM"), 0u) << job.err();
  const int64_t newest = saved.newest_good();
  EXPECT_GE(newest, last_number(job.out(), "successfully saved checkpoint at iteration "));
}

}  // namespace
}  // namespace bev::test
