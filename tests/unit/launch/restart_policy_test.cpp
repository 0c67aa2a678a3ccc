#include "launch/restart_policy.h"

#include <gtest/gtest.h>

namespace bev {
namespace {

using std::chrono::milliseconds;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class Policy : public ::testing::Test {
 protected:
  Policy() {
    job_.max_restarts = 100;
    job_.is_own_program = true;
    job_.progress = {.newest = [this] { return newest_; }, .folder = "saved", .logs = "run/logs"};
  }

  static AttemptEnd ended(int code) {
    return {.code = code, .seconds = 3, .words = "rank 1: killed by signal 9 (SIGKILL)"};
  }

  LaunchJob job_;
  std::optional<int64_t> newest_ = 0;
};

TEST_F(Policy, ProgressIsCountedAndBringsTheShortWaitBack) {
  newest_ = 20;
  RestartPolicy policy(job_);
  newest_ = 60;
  auto verdict = policy.after(ended(137));
  EXPECT_TRUE(verdict.again);
  EXPECT_EQ(verdict.wait, milliseconds(1000));
  EXPECT_TRUE(has(verdict.words,
                  "restart 1 of 100 after 1 s, continuing from iteration 60; progress since the "
                  "last start: 40 iterations"))
      << verdict.words;
  verdict = policy.after(ended(137));
  EXPECT_EQ(verdict.wait, milliseconds(2000)) << "no progress";
  EXPECT_TRUE(has(verdict.words, "restart 2 of 100 after 2 s")) << verdict.words;
  EXPECT_TRUE(has(verdict.words, "last start: 0 iterations")) << verdict.words;
  newest_ = 61;
  verdict = policy.after(ended(137));
  EXPECT_EQ(verdict.wait, milliseconds(1000));
  EXPECT_TRUE(has(verdict.words, "last start: 1 iteration")) << verdict.words;
}

TEST_F(Policy, ThreeIdleAttemptsAreEnough) {
  RestartPolicy policy(job_);
  newest_ = 40;
  EXPECT_TRUE(policy.after(ended(137)).again);
  EXPECT_TRUE(policy.after(ended(137)).again);
  EXPECT_TRUE(policy.after(ended(5)).again);
  const auto verdict = policy.after(ended(137));
  EXPECT_FALSE(verdict.again);
  for (const char* words :
       {"3 attempts in a row made no new checkpoint", "the newest in saved is of iteration 40",
        "attempt 1: rank 1: killed", "attempt 3: ", "run/logs", "checkpoint.interval"})
    EXPECT_TRUE(has(verdict.words, words)) << words << verdict.words;
  EXPECT_FALSE(has(verdict.words, "attempt 0: ")) << verdict.words;
}

TEST_F(Policy, NewCheckpointEndsARowOfIdleAttempts) {
  RestartPolicy policy(job_);
  EXPECT_TRUE(policy.after(ended(137)).again);
  EXPECT_TRUE(policy.after(ended(137)).again);
  newest_ = 10;
  EXPECT_TRUE(policy.after(ended(137)).again);
  EXPECT_TRUE(policy.after(ended(137)).again);
  EXPECT_TRUE(policy.after(ended(137)).again);
  EXPECT_FALSE(policy.after(ended(137)).again);
}

TEST_F(Policy, SignalsOfPeopleAreNoIdleAttempts) {
  RestartPolicy policy(job_);
  AttemptEnd end = ended(143);
  end.by_people = true;
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(policy.after(end).again);
}

TEST_F(Policy, NobodyKnowsTheProgressOfOtherPrograms) {
  job_.is_own_program = false;
  job_.progress = {};
  RestartPolicy policy(job_);
  for (int i = 0; i < 10; ++i) {
    const auto verdict = policy.after(ended(i % 2 == 0 ? 3 : 6));
    EXPECT_TRUE(verdict.again);
    EXPECT_FALSE(has(verdict.words, "iteration")) << verdict.words;
  }
  job_.progress.newest = [] { return std::optional<int64_t>(); };
  RestartPolicy unknown(job_);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(unknown.after(ended(4)).again);
}

TEST_F(Policy, IdleAttemptsMayBeUnlimited) {
  job_.max_idle_restarts = 0;
  RestartPolicy policy(job_);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(policy.after(ended(137)).again);
}

TEST_F(Policy, SameFailureOfDataOrNumbersIsNotRepeated) {
  for (const int code : {3, 6}) {
    newest_ = 0;
    RestartPolicy policy(job_);
    newest_ = 20;
    EXPECT_TRUE(policy.after(ended(code)).again);
    newest_ = 40;
    EXPECT_TRUE(policy.after(ended(code)).again) << "it came further";
    const auto verdict = policy.after(ended(code));
    EXPECT_FALSE(verdict.again) << code;
    EXPECT_TRUE(has(verdict.words, code == 3 ? "the data failed a second time"
                                             : "the numbers failed a second time"))
        << verdict.words;
    EXPECT_TRUE(has(verdict.words, "iteration 40")) << verdict.words;
  }
}

TEST_F(Policy, DataMustFailTwiceInARowNumbersNot) {
  job_.max_idle_restarts = 0;
  RestartPolicy data(job_), numbers(job_);
  EXPECT_TRUE(data.after(ended(3)).again);
  EXPECT_TRUE(data.after(ended(137)).again);
  EXPECT_TRUE(data.after(ended(3)).again);
  EXPECT_FALSE(data.after(ended(3)).again);
  EXPECT_TRUE(numbers.after(ended(6)).again);
  EXPECT_TRUE(numbers.after(ended(137)).again);
  EXPECT_FALSE(numbers.after(ended(6)).again);
}

TEST_F(Policy, WrongCommandsAndUsedUpRestartsEnd) {
  for (const int code : {2, 126, 127}) {
    RestartPolicy policy(job_);
    EXPECT_FALSE(policy.after(ended(code)).again) << code;
  }
  job_.max_restarts = 1;
  RestartPolicy policy(job_);
  newest_ = 10;
  EXPECT_TRUE(policy.after(ended(137)).again);
  newest_ = 20;
  const auto verdict = policy.after(ended(137));
  EXPECT_FALSE(verdict.again) << "a restart with progress counts too";
  EXPECT_TRUE(has(verdict.words, "that was restart 1 of 1")) << verdict.words;
}

TEST_F(Policy, WithoutRestartsNothingIsSaid) {
  job_.max_restarts = 0;
  RestartPolicy policy(job_);
  const auto verdict = policy.after(ended(137));
  EXPECT_FALSE(verdict.again);
  EXPECT_EQ(verdict.words, "");
}

}  // namespace
}  // namespace bev
