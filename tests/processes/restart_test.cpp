// Trainings that their launcher starts again: they go on by themselves, end as if nothing had been,
// and are given up where that leads nowhere.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <random>

#include "processes/saved_run.h"

namespace bev::test {
namespace {

// For what a busy machine needs to do.
constexpr double kRestartPatience = 240;

const std::vector<std::string> kQuiet{"--eval-iters", "0"};

// The last iteration that was printed.
int64_t iteration_of(const Job& job) { return last_number("\n" + job.out(), "\n iteration "); }

// Waits until the training has come so far. False: it has ended before, or does not get on.
bool await_iteration(Job& job, int64_t iteration) {
  for (const double until = seconds_now() + kRestartPatience; seconds_now() < until; pause(0.002)) {
    if (iteration_of(job) >= iteration) return true;
    if (job.children().front().code) return false;
  }
  return false;
}

// The same for a number of texts on stderr.
bool await_count(Job& job, const std::string& text, size_t times) {
  bool is_over = false;
  for (const double until = seconds_now() + kRestartPatience; seconds_now() < until; pause(0.005)) {
    if (count(job.err(), text) >= times) return true;
    // What it said last is there by now.
    if (is_over) break;
    is_over = job.children().front().code.has_value();
  }
  return false;
}

// The command of a run behind a launcher that starts it again, without --load.
std::vector<std::string> restarting(const SavedRun& run, const std::vector<std::string>& more) {
  std::vector<std::string> command = run.command(std::vector<std::string>{"--load", ""} + more);
  const std::vector<std::string> launcher =
      command[1] == "launch" ? std::vector<std::string>{"--max-restarts", "100"}
                             : std::vector<std::string>{"launch", "--max-restarts", "100"};
  command.insert(command.begin() + (command[1] == "launch" ? 2 : 1), launcher.begin(),
                 launcher.end());
  return command;
}

void expect_good_end(Job& job) {
  ASSERT_TRUE(job.await_end(kRestartPatience).has_value()) << job.err();
  EXPECT_EQ(job.children().front().code, 0) << job.err();
}

class Restarted : public testing::TestWithParam<Ranks> {};

TEST_P(Restarted, ThreeTimesEndsAsIfNothingHadBeen) {
  if (const std::string why = why_not(GetParam()); !why.empty()) GTEST_SKIP() << why;
  constexpr int64_t kIterations = 300;
  const SavedRun run(GetParam(), kIterations, kQuiet);
  Job job(2);
  job.start(restarting(run, {"--save-interval", "10"}), {});
  std::mt19937 random(7);
  for (int64_t kill = 1; kill <= 3; ++kill) {
    ASSERT_TRUE(await_iteration(job, 40 * kill)) << job.err();
    const int rank = GetParam() == Ranks::Threads ? 0 : static_cast<int>(random() % 2);
    job.signal(rank, SIGKILL);
    ASSERT_TRUE(await_count(job, "all start again: restart ", static_cast<size_t>(kill)))
        << job.err();
  }
  expect_good_end(job);
  EXPECT_EQ(count(job.err(), "resume    "), 3u) << job.err();
  EXPECT_EQ(count(job.err(), " of 100 after 1 s, continuing from iteration "), 3u)
      << "the wait begins anew after progress\n"
      << job.err();
  expect_same_end(run, undisturbed(GetParam(), kIterations, kQuiet));
  expect_no_leftovers(run.checkpoints());
}

INSTANTIATE_TEST_SUITE_P(Of, Restarted, testing::Values(Ranks::Threads, Ranks::Launch),
                         [](const auto& of) { return name_of(of.param); });

TEST(RestartedBeforeSaving, StartsAnewInTheSameFolders) {
  if (const std::string why = why_not(Ranks::Launch); !why.empty()) GTEST_SKIP() << why;
  constexpr int64_t kIterations = 150;
  const SavedRun run(Ranks::Launch, kIterations, kQuiet);
  Job job(2);
  job.start(restarting(run, {}), {});
  ASSERT_TRUE(await_iteration(job, 3)) << job.err();
  job.signal(1, SIGKILL);
  expect_good_end(job);
  EXPECT_EQ(count(job.err(),
                  "from the start, as there is no checkpoint yet; progress since the "
                  "last start: 0 iterations"),
            1u)
      << job.err();
  expect_same_end(run, undisturbed(Ranks::Launch, kIterations, kQuiet));
}

TEST(RestartedFinetuning, ContinuesFromItsOwnCheckpoints) {
  const SavedRun before(Ranks::Threads, 4, kQuiet);
  ASSERT_EQ(before.run(), 0);
  constexpr int64_t kIterations = 200;
  const std::vector<std::string> flags{"--load", before.checkpoints().string(), "--finetune"};
  const SavedRun whole(Ranks::Threads, kIterations, kQuiet),
      run(Ranks::Threads, kIterations, kQuiet);
  ASSERT_EQ(whole.run(flags), 0);
  Job job(1);
  job.start(restarting(run, flags + std::vector<std::string>{"--save-interval", "10"}), {});
  ASSERT_TRUE(await_iteration(job, 50)) << job.err();
  job.signal(0, SIGKILL);
  expect_good_end(job);
  EXPECT_EQ(count(job.err(), "note: restart 1: this run continues from its own checkpoints"), 1u)
      << job.err();
  EXPECT_EQ(count(job.err(), "; only its weights"), 1u) << "at the first start\n" << job.err();
  expect_same_end(run, whole);
}

TEST(RestartedInVain, IsGivenUp) {
  if (const std::string why = why_not(Ranks::Launch); !why.empty()) GTEST_SKIP() << why;
  const SavedRun run(Ranks::Launch, 1'000'000, kQuiet);
  Job job(2);
  job.start(restarting(run, {}), {});
  std::mt19937 random(3);
  size_t kills = 0;
  const double until = seconds_now() + kRestartPatience;
  while (!job.children().front().code && seconds_now() < until) {
    pause(0.005);
    // As soon as the first rank says something.
    const pid_t process = job.process_of(static_cast<int>(random() % 2));
    if (process <= 0 || count(job.err(), "model     ") <= kills) continue;
    ::kill(process, SIGKILL);
    ++kills;
  }
  ASSERT_TRUE(job.await_end(kRestartPatience).has_value()) << job.err();
  EXPECT_EQ(kills, 3u) << job.err();
  EXPECT_EQ(job.children().front().code, 128 + SIGKILL) << job.err();
  for (const char* words : {"restart 2 of 100 after 2 s",
                            "not started again: 3 attempts in a row made no new "
                            "checkpoint (--max-idle-restarts 3); there is none in ",
                            "attempt 0: rank ", "attempt 2: rank ", "look at what the ranks said"})
    EXPECT_EQ(count(job.err(), words), 1u) << words << "\n" << job.err();
}

TEST(RestartedNumbers, AreNotTriedAThirdTime) {
  const SavedRun run(Ranks::Threads, 1'000'000, kQuiet);
  Job job(1);
  job.start(restarting(run, {"--lr", "1e6", "--optim.kind", "sgd", "--clip-grad", "0"}), {});
  ASSERT_TRUE(job.await_end(kRestartPatience).has_value()) << job.err();
  EXPECT_EQ(job.children().front().code, 6) << job.err();
  EXPECT_EQ(count(job.err(), "all start again"), 1u) << job.err();
  EXPECT_EQ(count(job.err(), "not started again: the numbers failed a second time"), 1u)
      << job.err();
}

struct ManyKills {
  int kills;
  int64_t every;  // iterations
};

class RestartedOften : public testing::TestWithParam<ManyKills> {};

TEST_P(RestartedOften, EndsAsIfNothingHadBeen) {
  if (const std::string why = why_not(Ranks::Launch); !why.empty()) GTEST_SKIP() << why;
  const auto [kills, every] = GetParam();
  const int64_t iterations = every * (kills + 1);
  const SavedRun run(Ranks::Launch, iterations, kQuiet);
  Job job(2);
  std::mt19937 random(20);
  const double begun = seconds_now();
  job.start(restarting(run, {"--save-interval", "20"}), {});
  std::printf("  kill  seconds  rank  iteration  continued from  lost steps\n");
  int64_t lost = 0;
  for (int kill = 1; kill <= kills; ++kill) {
    ASSERT_TRUE(await_iteration(job, every * (kill - 1) + static_cast<int64_t>(random() % 80) + 20))
        << job.err();
    pause(std::uniform_real_distribution<>(0, 0.05)(random));
    const int rank = static_cast<int>(random() % 2);
    job.signal(rank, SIGKILL);
    const double at = seconds_now() - begun;
    ASSERT_TRUE(await_count(job, "all start again: restart ", static_cast<size_t>(kill)))
        << job.err();
    // All that the ended ranks printed is there by now.
    const int64_t reached = iteration_of(job);
    const int64_t from = last_number(job.err(), "continuing from iteration ");
    // The first rank prints after it has saved.
    const int64_t gone = std::max<int64_t>(0, reached - from);
    lost += gone;
    std::printf("  %4d  %7.1f  %4d  %9lld  %14lld  %10lld\n", kill, at, rank,
                static_cast<long long>(reached), static_cast<long long>(from),
                static_cast<long long>(gone));
    EXPECT_LE(gone, 2 * 20 + 1) << "more than two intervals of saving";
  }
  expect_good_end(job);
  std::printf("%d kills in %.1f s, %lld steps of %lld done twice\n", kills, seconds_now() - begun,
              static_cast<long long>(lost), static_cast<long long>(iterations));
  expect_same_end(run, undisturbed(Ranks::Launch, iterations, kQuiet));
}

INSTANTIATE_TEST_SUITE_P(Slow, RestartedOften, testing::Values(ManyKills{20, 200}),
                         [](const auto& of) { return std::to_string(of.param.kills); });

}  // namespace
}  // namespace bev::test
