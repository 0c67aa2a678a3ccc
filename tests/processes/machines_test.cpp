// Jobs whose number of machines changes: several launchers, all on this machine.
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <fstream>
#include <map>

#include "base/json.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/checkpoint_reader.h"
#include "processes/saved_run.h"

namespace bev::test {
namespace {

constexpr double kPatience = 240;

// Loss by iteration. REQUIRES: each is there once.
std::map<int64_t, double> losses_in(const std::filesystem::path& output) {
  std::map<int64_t, double> all;
  std::ifstream file(output / "metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object() || json.value("event", "") != "iteration") continue;
    const bool is_new =
        all.emplace(json.at("iteration").get<int64_t>(), json.at("lm_loss").get<double>()).second;
    EXPECT_TRUE(is_new) << line;
  }
  return all;
}

// Launchers of one rank each; the first started is the first machine.
class Machines : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_not(Start::Launch); !why.empty()) GTEST_SKIP() << why;
  }

  // The training takes as long as the test wants it to.
  std::vector<std::string> training(int64_t iterations, int batch) const {
    return std::vector<std::string>{"train"} + small_training(iterations) +
           std::vector<std::string>{
               "--global-batch-size", std::to_string(batch),  "--eval-iters",    "0",
               "--train.output",      job_.output().string(), "--save-interval", "20"};
  }

  // Returns which child of the job it is.
  size_t launch(int number, const std::string& range, const std::vector<std::string>& command,
                const std::string& last_call = "2") {
    job_.start(std::vector<std::string>{BEV_PROGRAM, "launch", "--nnodes", range, "--node-rank",
                                        std::to_string(number), "--master-addr", "127.0.0.1",
                                        "--master-port", std::to_string(job_.port()), "--last-call",
                                        last_call, "--max-restarts", "9", "--join-timeout", "4"} +
                   command,
               {{"BEVATRON_SECRET", job_.secret}});
    return job_.children().size() - 1;
  }

  void kill_launcher(size_t child) { ::kill(job_.children()[child].process, SIGKILL); }

  bool await(const std::string& text, size_t times = 1) {
    bool is_over = false;
    for (const double until = seconds_now() + kPatience; seconds_now() < until; pause(0.005)) {
      if (count(job_.err(), text) >= times) return true;
      // What it said last is there by now.
      if (is_over) break;
      is_over = job_.children().front().code.has_value();
    }
    ADD_FAILURE() << "stderr has no '" << text << "'\n" << job_.err();
    return false;
  }

  bool await_iteration(int64_t iteration) {
    for (const double until = seconds_now() + kPatience; seconds_now() < until; pause(0.005)) {
      if (last_number("\n" + job_.out(), "\n iteration ") >= iteration) return true;
      if (job_.children().front().code) break;
    }
    ADD_FAILURE() << "iteration " << iteration << " does not come\n" << job_.err();
    return false;
  }

  std::vector<int> codes() {
    EXPECT_TRUE(job_.await_end(kPatience).has_value()) << job_.err();
    std::vector<int> all;
    for (const Child& child : job_.children()) all.push_back(child.code.value_or(-1));
    return all;
  }

  Job job_{3};
};

constexpr int kKilled = 128 + SIGKILL;

TEST_F(Machines, GoOnWithoutOneAndWithItAgain) {
  constexpr int64_t kIterations = 400;
  const std::vector<std::string> command = training(kIterations, 12);
  for (int number = 0; number < 3; ++number) launch(number, "2:3", command, "60");
  ASSERT_TRUE(await("start: 3 of 3 machines take part, 3 ranks, data-parallel 3", 3));
  ASSERT_TRUE(await_iteration(30));
  kill_launcher(1);
  ASSERT_TRUE(await("machine 1 (host "));
  ASSERT_TRUE(await("2 of 3 machines are here; others have 60 s to come"));
  // The first that comes again ends the last call.
  launch(1, "2:3", command, "60");
  ASSERT_TRUE(await("restart 1: 3 of 3 machines take part, 3 ranks, data-parallel 3"));
  ASSERT_TRUE(await_iteration(100));
  job_.signal(2, SIGKILL);
  ASSERT_TRUE(await("restart 2: 3 of 3 machines take part"));
  EXPECT_EQ(codes(), (std::vector<int>{0, kKilled, 0, 0})) << job_.err();
}

TEST_F(Machines, FewerComeToTheSameLosses) {
  constexpr int64_t kIterations = 250;
  const std::vector<std::string> command = training(kIterations, 12);
  for (int number = 0; number < 3; ++number) launch(number, "2:3", command, "5");
  ASSERT_TRUE(await("start: 3 of 3 machines take part"));
  ASSERT_TRUE(await_iteration(30));
  kill_launcher(1);
  ASSERT_TRUE(await("restart 1: 2 of 3 machines take part, 2 ranks, data-parallel 3 -> 2"));
  EXPECT_EQ(codes(), (std::vector<int>{0, kKilled, 0})) << job_.err();
  EXPECT_GE(count(job_.err(), ") is gone: "), 1u) << job_.err();

  Job alone(1);
  alone.start(std::vector<std::string>{BEV_PROGRAM} + command +
                  std::vector<std::string>{"--train.output", alone.output().string()},
              {});
  ASSERT_TRUE(alone.await_end(kPatience).has_value());
  const std::map<int64_t, double> one = losses_in(alone.output()), many = losses_in(job_.output());
  ASSERT_EQ(one.size(), static_cast<size_t>(kIterations));
  ASSERT_EQ(many.size(), one.size());
  double largest = 0;
  for (const auto& [iteration, loss] : one)
    largest = std::max(largest, std::abs(many.at(iteration) - loss));
  EXPECT_LE(largest, 1e-5);
  RecordProperty("largest_difference", std::to_string(largest));
  const std::filesystem::path last =
      CheckpointFolder(job_.output() / "checkpoints").place_of(kIterations);
  CheckpointReader(last).verify();
}

// Three cannot divide the batch, so one is in reserve until it is needed.
TEST_F(Machines, InReserveTakeOver) {
  const std::vector<std::string> command = training(600, 4);
  for (int number = 0; number < 3; ++number) launch(number, "2:3", command);
  ASSERT_TRUE(
      await("start: 2 of 3 machines take part, 2 ranks, data-parallel 2; in reserve: "
            "machine 2 (host "));
  ASSERT_TRUE(await_iteration(30));
  kill_launcher(1);
  ASSERT_TRUE(await("restart 1: 2 of 3 machines take part, 2 ranks, data-parallel 2"));
  ASSERT_TRUE(await_iteration(100));
  launch(1, "2:3", command);
  ASSERT_TRUE(await("an attempt is under way; this machine waits for the next one"));
  EXPECT_EQ(codes(), (std::vector<int>{0, kKilled, 0, 0})) << job_.err();
}

TEST_F(Machines, EndWithTheFirst) {
  const std::vector<std::string> command = training(1'000'000, 12);
  for (int number = 0; number < 3; ++number) launch(number, "2:3", command, "60");
  ASSERT_TRUE(await_iteration(5));
  kill_launcher(0);
  EXPECT_EQ(codes(), (std::vector<int>{kKilled, 5, 5})) << job_.err();
  EXPECT_EQ(count(job_.err(), "; without it the job ends here"), 2u) << job_.err();
}

TEST_F(Machines, ThatPeopleStopEndWell) {
  const std::vector<std::string> command = training(1'000'000, 12);
  for (int number = 0; number < 2; ++number) launch(number, "1:2", command, "60");
  ASSERT_TRUE(await_iteration(5));
  ::kill(job_.children()[1].process, SIGTERM);
  EXPECT_EQ(codes(), (std::vector<int>{0, 0})) << job_.err();
}

TEST_F(Machines, AreGivenUpWhenRestartsAreUsedUp) {
  const std::vector<std::string> command{"/bin/sh", "-c", "exit $((RANK * 4))"};
  std::vector<std::string> two{
      BEV_PROGRAM,     "launch",    "--nnodes",       "1:2",
      "--master-addr", "127.0.0.1", "--master-port",  std::to_string(job_.port()),
      "--last-call",   "60",        "--max-restarts", "1"};
  for (const char* number : {"0", "1"})
    job_.start(two + std::vector<std::string>{"--node-rank", number} + command,
               {{"BEVATRON_SECRET", job_.secret}});
  EXPECT_EQ(codes(), (std::vector<int>{4, 4})) << job_.err();
  EXPECT_EQ(count(job_.err(), "not started again: that was restart 1 of 1"), 2u) << job_.err();
  EXPECT_GE(count(job_.err(), "): rank 1: exit code 4"), 2u) << job_.err();
}

TEST_F(Machines, WithAnotherSecretAreRefused) {
  const std::vector<std::string> command = training(200, 4);
  for (int number = 0; number < 2; ++number) launch(number, "2:3", command, "1");
  ASSERT_TRUE(await_iteration(5));
  Job stranger(1);
  stranger.start(std::vector<std::string>{BEV_PROGRAM, "launch", "--nnodes", "2:3", "--node-rank",
                                          "2", "--master-addr", "127.0.0.1", "--master-port",
                                          std::to_string(job_.port())} +
                     command,
                 {{"BEVATRON_SECRET", "not the secret of this job"}});
  ASSERT_TRUE(stranger.await_end(kPatience).has_value());
  EXPECT_EQ(stranger.children().front().code, 5) << stranger.err();
  EXPECT_EQ(count(stranger.err(), "cannot join the first machine at 127.0.0.1:"), 1u)
      << stranger.err();
  EXPECT_EQ(codes(), (std::vector<int>{0, 0})) << job_.err();
  EXPECT_GE(count(job_.err(), "refused a connection from 127.0.0.1:"), 1u) << job_.err();
}

}  // namespace
}  // namespace bev::test
