// Which checkpoints of a run remain.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "base/file.h"
#include "base/json.h"
#include "checkpoint/manifest.h"
#include "processes/saved_run.h"

namespace bev::test {
namespace {

using Iterations = std::vector<int64_t>;

TEST(Kept, TheNewestAndMultiples) {
  const SavedRun run(Ranks::Threads, 8,
                     {"--save-interval", "1", "--checkpoint.keep", "2", "--checkpoint.keep_every",
                      "3", "--eval-iters", "0"});
  std::string err;
  ASSERT_EQ(run.run({}, &err), 0) << err;
  EXPECT_EQ(checkpoints_in(run.checkpoints()), (Iterations{3, 6, 7, 8}));
  EXPECT_EQ(run.newest_good(), 8);
  expect_no_leftovers(run.checkpoints());
  EXPECT_EQ(read_text(run.checkpoints() / "latest_checkpointed_iteration.txt"), "8");
}

TEST(Kept, MultiplesAloneAndTheNewest) {
  const SavedRun run(Ranks::Threads, 5,
                     {"--save-interval", "1", "--save-retain-interval", "3", "--eval-iters", "0"});
  std::string err;
  ASSERT_EQ(run.run({}, &err), 0) << err;
  EXPECT_EQ(checkpoints_in(run.checkpoints()), (Iterations{3, 5}));
}

// The rules go on where another run ended.
TEST(Kept, OverSeveralRuns) {
  const SavedRun run(Ranks::Threads, 7,
                     {"--save-interval", "2", "--checkpoint.keep", "2", "--eval-iters", "0"});
  std::string err;
  ASSERT_EQ(run.run({"--exit-interval", "3"}, &err), 0) << err;
  EXPECT_EQ(checkpoints_in(run.checkpoints()), (Iterations{2, 3}));
  ASSERT_EQ(run.run({}, &err), 0) << err;
  EXPECT_EQ(checkpoints_in(run.checkpoints()), (Iterations{6, 7}));
}

TEST(Kept, TheBestByValidation) {
  constexpr int64_t kLast = 9;
  // So large a rate that it does not always become better.
  const SavedRun run(
      Ranks::Threads, kLast,
      {"--save-interval", "1", "--checkpoint.keep", "1", "--checkpoint.keep_best", "2",
       "--eval-interval", "1", "--eval-iters", "2", "--lr", "0.1", "--lr-decay-style", "constant"});
  std::string err;
  ASSERT_EQ(run.run({}, &err), 0) << err;
  // As the log has them; the last one is saved before it is evaluated, and has no loss.
  std::vector<std::pair<double, int64_t>> losses;
  std::ifstream file(run.output() / "metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    const Json json = Json::parse(line);
    if (json["event"] == "validation" && json["iteration"] < kLast)
      losses.emplace_back(json["lm_loss"].get<double>(), -json["iteration"].get<int64_t>());
  }
  ASSERT_EQ(losses.size(), static_cast<size_t>(kLast - 1));
  std::sort(losses.begin(), losses.end());
  std::set<int64_t> expected{kLast};
  for (size_t i = 0; i < 2; ++i) expected.insert(-losses[i].second);
  EXPECT_LT(*expected.begin(), kLast - 2) << "the best are the newest, which shows nothing";
  EXPECT_EQ(checkpoints_in(run.checkpoints()), Iterations(expected.begin(), expected.end()));
}

class KeptOfPhases : public testing::TestWithParam<int64_t> {};

// Every 10 until 100, then every 18 until 1000: what BigScience saved of its 13B model.
TEST_P(KeptOfPhases, AllRemain) {
  const int64_t last = GetParam();
  const SavedRun run(Ranks::Threads, last,
                     {"--num-layers",
                      "1",
                      "--hidden-size",
                      "8",
                      "--num-attention-heads",
                      "1",
                      "--threads",
                      "1",
                      "--model.vocab",
                      "16",
                      "--seq-length",
                      "8",
                      "--log-interval",
                      "1000",
                      "--checkpoint.schedule",
                      "10:100,18:1000,1500",
                      "--checkpoint.keep",
                      "2",
                      "--eval-iters",
                      "0"});
  std::string err;
  ASSERT_EQ(run.run({}, &err), 0) << err;
  Iterations expected;
  for (int64_t iteration = 10; iteration <= std::min<int64_t>(last, 100); iteration += 10)
    expected.push_back(iteration);
  for (int64_t iteration = 118; iteration <= last; iteration += 18) expected.push_back(iteration);
  EXPECT_EQ(checkpoints_in(run.checkpoints()), expected);
  if (last == 1000) {
    EXPECT_EQ(expected.size(), 60u);
  }
  EXPECT_EQ(run.newest_good(), last);
}

INSTANTIATE_TEST_SUITE_P(Of, KeptOfPhases, testing::Values(136));
INSTANTIATE_TEST_SUITE_P(Slow, KeptOfPhases, testing::Values(1000));

}  // namespace
}  // namespace bev::test
