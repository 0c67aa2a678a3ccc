#include "report/status_report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <ctime>

namespace bev::app {
namespace {

// 2026-11-16 09:00:00 UTC, a Monday.
constexpr double kNow = 1794819600;

RunInfo training() {
  RunStatus status;
  status.phase = RunPhase::Training;
  status.phase_since = kNow - 100;
  status.started = kNow - 3660;
  status.updated = kNow - 2;
  status.host = "node7";
  status.program = "bevatron 0.1.0";
  status.device = "cuda, bf16";
  status.layout = "4 ranks";
  status.ranks = 4;
  status.iteration = 1200;
  status.iterations = 10000;
  status.iteration_time = kNow - 3;
  status.loss = 2.74309;
  status.valid_loss = 2.7647;
  status.grad_norm = 0.5231;
  status.learning_rate = 3e-4;
  status.tokens_per_second = 22388.4;
  status.seconds_per_iteration = 0.52;
  status.seconds_left = 5402;
  status.device_bytes = 1024.0 * 1024 * 1024;
  status.host_bytes = 2048.0 * 1024;
  status.process.pid = 4711;
  return {.folder = "my-run",
          .status = status,
          .metrics = LastMetrics{.iteration = 1201, .iterations = 9, .loss = 9.0},
          .has_config = true,
          .life = ProcessState::Alive,
          .saved = RunInfo::Saved{
              .path = "my-run/checkpoints/iter_0001000", .iteration = 1000, .time = kNow - 125}};
}

RunInfo with(RunInfo facts, RunPhase phase) {
  facts.status->phase = phase;
  return facts;
}

std::string row(const StatusReport& report, const std::string& name) {
  for (const StatusRow& row : report.rows)
    if (row.name == name) return row.text;
  return "";
}

std::string row(const RunInfo& facts, const std::string& name) {
  return row(describe(facts, kNow), name);
}

std::string notes(const RunInfo& facts) {
  std::string all;
  for (const std::string& note : describe(facts, kNow).notes) all += note + "\n";
  return all;
}

class StatusReportTest : public testing::Test {
 protected:
  StatusReportTest() {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
  }
};

// Fails when the row shows only the weighted sum of several losses.
TEST_F(StatusReportTest, OfAModelWithTwoLosses) {
  RunInfo facts = training();
  facts.status->losses = {{"lm", 2.05}, {"sop", 0.6931}};
  facts.status->valid_losses = {{"lm", 2.1}, {"sop", NAN}};
  EXPECT_EQ(row(facts, "loss"),
            "2.7431 (lm 2.0500, sop 0.6931), validation 2.7647 (lm 2.1000, sop nan), gradient norm "
            "0.523");
}

TEST_F(StatusReportTest, OfATraining) {
  const StatusReport report = describe(training(), kNow);
  EXPECT_EQ(report.state, RunState::Training);
  EXPECT_EQ(row(report, "run"), "my-run");
  EXPECT_EQ(row(report, "state"), "training, iteration 1,200 of 10,000 (12.0 %)");
  EXPECT_EQ(row(report, "loss"), "2.7431, validation 2.7647, gradient norm 0.523");
  EXPECT_EQ(row(report, "learning rate"), "3.000E-04");
  EXPECT_EQ(row(report, "speed"), "22,388 tokens/s, 520.0 ms per iteration");
  EXPECT_EQ(row(report, "left"), "1 h 30 min, done Mon 16 Nov 10:30");
  EXPECT_EQ(row(report, "checkpoint"),
            "iteration 1,000, 2 min 05 s ago, my-run/checkpoints/iter_0001000");
  EXPECT_EQ(row(report, "health"), "good: no update skipped, no spike, no rollback");
  EXPECT_EQ(row(report, "memory"), "1.00 GiB of device memory, 2.00 MiB of host memory");
  EXPECT_EQ(row(report, "ranks"), "4 ranks; cuda, bf16");
  EXPECT_EQ(row(report, "process"),
            "4711 on node7, bevatron 0.1.0, started Mon 16 Nov 07:59, 1 h 01 min ago");
  EXPECT_EQ(row(report, "continue with"), "");
  EXPECT_TRUE(report.notes.empty());
  EXPECT_EQ(report.line,
            "2026-11-16 09:00:00 training, iteration 1,200 of 10,000 (12.0 %), loss 2.7431, 22,388 "
            "tokens/s, 520.0 ms per iteration, left 1 h 30 min, done Mon 16 Nov 10:30");
}

TEST_F(StatusReportTest, OfOtherPhases) {
  RunInfo start = with(training(), RunPhase::Starting);
  EXPECT_EQ(row(start, "state"), "starting, for 1 min 40 s");
  EXPECT_EQ(row(with(training(), RunPhase::Evaluating), "state"),
            "evaluating for 1 min 40 s, after iteration 1,200 of 10,000 (12.0 %)");
  EXPECT_EQ(describe(with(training(), RunPhase::Saving), kNow).state, RunState::Saving);
  start = training();
  start.status->iteration = 0;
  EXPECT_EQ(row(start, "state"), "training, before the first iteration of 10,000");
  start.status->iteration = 7;
  start.status->iterations = 0;
  EXPECT_EQ(row(start, "state"), "training, iteration 7");
}

TEST_F(StatusReportTest, OfARunThatHasEnded) {
  RunInfo facts = with(training(), RunPhase::Ended);
  facts.life = ProcessState::Gone;
  facts.has_model = true;
  facts.status->ending = "complete";
  facts.status->iteration = 10000;
  StatusReport report = describe(facts, kNow + 1e6);
  EXPECT_EQ(report.state, RunState::Ended);
  EXPECT_TRUE(is_over(report.state));
  EXPECT_EQ(row(report, "state"), "ended: complete, 10,000 iterations");
  EXPECT_EQ(row(report, "left"), "");
  EXPECT_EQ(row(report, "model"), "my-run/model");
  EXPECT_EQ(report.next, "");

  facts.status->ending = "stopped by SIGTERM";
  facts.status->iteration = 1200;
  report = describe(facts, kNow);
  EXPECT_EQ(row(report, "state"),
            "ended: stopped by SIGTERM, after iteration 1,200 of 10,000 (12.0 %)");
  EXPECT_EQ(row(report, "continue with"), "bevatron train my-run/config.toml --load my-run");

  facts.status->phase = RunPhase::Failed;
  facts.status->ending = "the loss is not finite";
  facts.status->exit_code = 6;
  report = describe(facts, kNow);
  EXPECT_EQ(row(report, "state"),
            "failed: the loss is not finite (exit code 6), after iteration 1,200 of 10,000 (12.0 "
            "%)");
  EXPECT_EQ(report.next, "bevatron train my-run/config.toml --load my-run");
}

TEST_F(StatusReportTest, TheCommandThatContinues) {
  RunInfo facts = with(training(), RunPhase::Failed);
  facts.saved->path = "/big disk/it's/iter_0001000";
  EXPECT_EQ(describe(facts, kNow).next,
            "bevatron train my-run/config.toml --load '/big disk/it'\\''s'");
  facts.saved.reset();
  EXPECT_EQ(row(facts, "start again"), "bevatron train my-run/config.toml");
  facts.has_config = false;
  EXPECT_EQ(describe(facts, kNow).next, "");
  EXPECT_NE(notes(facts).find("config.toml is missing"), std::string::npos);
}

TEST_F(StatusReportTest, OfARunWhoseProcessIsGone) {
  RunInfo facts = training();
  facts.life = ProcessState::Gone;
  facts.status->updated = kNow - 200;
  const StatusReport report = describe(facts, kNow);
  EXPECT_EQ(report.state, RunState::Crashed);
  // The record has an iteration more than the status.
  EXPECT_EQ(row(report, "state"),
            "crashed: its process no longer exists, last seen 3 min 20 s ago training, iteration "
            "1,201 of "
            "10,000 (12.0 %)");
  EXPECT_EQ(row(report, "loss").substr(0, 6), "9.0000");
  EXPECT_EQ(row(report, "health"), "no update skipped, no spike, no rollback");
  EXPECT_EQ(row(report, "left"), "");
  EXPECT_EQ(report.next, "bevatron train my-run/config.toml --load my-run");
  facts.status->phase = RunPhase::Starting;
  EXPECT_EQ(row(facts, "state"),
            "crashed: its process no longer exists, last seen 3 min 20 s ago starting");
}

TEST_F(StatusReportTest, OfARunOnAnotherMachine) {
  RunInfo facts = training();
  facts.life = ProcessState::Unknown;
  EXPECT_EQ(describe(facts, kNow).state, RunState::Training);
  facts.status->updated = kNow - 89;
  EXPECT_EQ(describe(facts, kNow).state, RunState::Training);
  facts.status->updated = kNow - 300;
  const StatusReport report = describe(facts, kNow);
  EXPECT_EQ(report.state, RunState::Silent);
  EXPECT_FALSE(is_over(report.state));
  EXPECT_EQ(
      row(report, "state"),
      "on host node7, no status update for 5 min 00 s, last seen training, iteration 1,200 of "
      "10,000 (12.0 %)");
  EXPECT_EQ(report.next, "") << "it may still be going on";
  facts.status->updated = kNow + 300;
  EXPECT_NE(notes(facts).find("the clock of node7 is 5 min 00 s ahead"), std::string::npos);
}

TEST_F(StatusReportTest, OfAProcessThatStandsStill) {
  RunInfo facts = training();
  facts.status->updated = kNow - 29;
  EXPECT_EQ(describe(facts, kNow).state, RunState::Training);
  facts.status->updated = kNow - 31;
  EXPECT_EQ(describe(facts, kNow).state, RunState::Silent);
  facts.status->updated = kNow - 300;
  EXPECT_EQ(
      row(facts, "state"),
      "no status update for 5 min 00 s, though its process is there: stopped, or waiting for the "
      "disk; last seen training, iteration 1,200 of 10,000 (12.0 %)");
}

TEST_F(StatusReportTest, AnIterationThatTakesMuchLongerThanUsual) {
  RunInfo facts = training();
  facts.status->phase_since = kNow - 5000;
  facts.status->iteration_time = kNow - 32;
  EXPECT_EQ(row(facts, "health").find("stuck"), std::string::npos);
  facts.status->iteration_time = kNow - 33;
  EXPECT_EQ(row(facts, "health"),
            "stuck? iteration 1,201 has taken 31 s so far, usual is 520.0 ms");
  EXPECT_NE(describe(facts, kNow).line.find("stuck?"), std::string::npos);
  // Validations and saves lie between iterations.
  facts.status->phase_since = kNow - 20;
  EXPECT_EQ(row(facts, "health").find("stuck"), std::string::npos);
  facts.status->phase_since = kNow - 5000;
  facts.status->seconds_per_iteration = 30;
  facts.status->iteration_time = kNow - 200;
  EXPECT_EQ(row(facts, "health").find("stuck"), std::string::npos);
  facts.status->seconds_per_iteration.reset();
  EXPECT_EQ(row(facts, "health").find("stuck"), std::string::npos) << "the first one may be slow";
  facts.status->iteration_time = kNow - 700;
  EXPECT_NE(row(facts, "health").find("stuck"), std::string::npos);
  facts.status->phase = RunPhase::Evaluating;
  EXPECT_EQ(row(facts, "health").find("stuck"), std::string::npos);
}

TEST_F(StatusReportTest, TimesThatAStatusLacks) {
  RunInfo facts = training();
  facts.status->iteration_time = facts.status->phase_since = facts.status->started = 0;
  facts.status->last_event = "a spike";
  EXPECT_EQ(row(facts, "health"),
            "good: no update skipped, no spike, no rollback; last event: a spike, an unknown time "
            "ago");
  EXPECT_EQ(row(facts, "process"), "4711 on node7, bevatron 0.1.0");
  facts.status->updated = 0;
  facts.life = ProcessState::Gone;
  EXPECT_NE(row(facts, "state").find("last seen an unknown time ago"), std::string::npos);
}

TEST_F(StatusReportTest, Health) {
  RunInfo facts = training();
  facts.status->skipped = 1;
  facts.status->spikes = 2000;
  facts.status->rollbacks = 1;
  facts.status->save_failure = "no room";
  facts.status->last_event = "a spike at iteration 1,100";
  facts.status->last_event_time = kNow - 45;
  EXPECT_EQ(row(facts, "health"),
            "the last save failed: no room; 1 update skipped; 2,000 spikes; 1 rollback; last "
            "event: a spike at iteration 1,100, 45 s ago");
  facts.status->slowest = "3 (+12.3 %)";
  EXPECT_EQ(row(facts, "speed"),
            "22,388 tokens/s, 520.0 ms per iteration, slowest rank 3 (+12.3 %)");
  facts.status->rate_factor = 0.5;
  EXPECT_EQ(row(facts, "learning rate"), "3.000E-04, 0.5 times the schedule (control/lr)");
}

TEST_F(StatusReportTest, OfAnOlderVersion) {
  RunInfo facts{.folder = "old",
                .metrics = LastMetrics{.iteration = 40,
                                       .iterations = 80,
                                       .loss = 3.5,
                                       .seconds = 2.0,
                                       .valid_loss = 3.25,
                                       .written = kNow - 7200},
                .has_config = true,
                .ranks = 2,
                .layout = "2 ranks: data 2"};
  const StatusReport report = describe(facts, kNow);
  EXPECT_EQ(report.state, RunState::Unknown);
  EXPECT_EQ(row(report, "state"),
            "not known; iteration 40 of 80 (50.0 %) was logged 2 h 00 min ago");
  EXPECT_EQ(row(report, "loss"), "3.5000, validation 3.2500");
  EXPECT_EQ(row(report, "speed"), "2.00 s per iteration");
  EXPECT_EQ(row(report, "checkpoint"), "none");
  EXPECT_EQ(row(report, "health"), "");
  EXPECT_EQ(row(report, "process"), "");
  EXPECT_EQ(row(report, "ranks"), "2 ranks: data 2");
  EXPECT_NE(notes(facts).find("of an older version, or the file was deleted"), std::string::npos);
}

TEST_F(StatusReportTest, OfWhatIsHalfDeleted) {
  RunInfo facts{.folder = "half", .status_problem = "half/status.json: not valid JSON"};
  EXPECT_EQ(row(facts, "state"), "not known");
  const std::string all = notes(facts);
  EXPECT_NE(all.find("status.json is damaged: half/status.json: not valid JSON"), std::string::npos)
      << all;
  EXPECT_NE(all.find("metrics.jsonl is missing"), std::string::npos) << all;
  EXPECT_EQ(all.find("older version"), std::string::npos) << all;
  facts.saved = {.path = "half/checkpoints/iter_0000200", .iteration = 200, .time = kNow - 86400};
  facts.saved_problem = "iter_0000300 is newer, but cannot be used";
  EXPECT_EQ(row(facts, "state"), "not known; iteration 200 was saved 24 h 00 min ago");
  EXPECT_NE(notes(facts).find("iter_0000300 is newer"), std::string::npos);

  facts = training();
  facts.saved.reset();
  facts.status->checkpoint = "run/checkpoints/iter_0001000";
  facts.status->checkpoint_iteration = 1000;
  facts.status->checkpoint_time = kNow - 61;
  EXPECT_EQ(row(facts, "checkpoint"),
            "iteration 1,000, 1 min 01 s ago, was saved as run/checkpoints/iter_0001000, and is "
            "not there now");
}

TEST_F(StatusReportTest, ForPrograms) {
  const Json json = to_json(training(), kNow);
  EXPECT_EQ(json.at("state"), "training");
  EXPECT_EQ(json.at("process"), "alive");
  EXPECT_EQ(json.at("status").at("iteration"), 1200);
  EXPECT_EQ(json.at("checkpoint").at("age"), 125);
  EXPECT_EQ(json.at("metrics").at("iteration"), 1201);
  EXPECT_EQ(json.at("end_time"), kNow - 2 + 5402);
  EXPECT_TRUE(json.at("continue").is_null());
  EXPECT_TRUE(json.at("stuck_seconds").is_null());
  EXPECT_TRUE(json.at("problems").empty());
  const Json empty = to_json({.folder = "none"}, kNow);
  EXPECT_EQ(empty.at("state"), "unknown");
  EXPECT_TRUE(empty.at("status").is_null());
  EXPECT_TRUE(empty.at("checkpoint").is_null());
  EXPECT_EQ(empty.size(), json.size());
}

}  // namespace
}  // namespace bev::app
