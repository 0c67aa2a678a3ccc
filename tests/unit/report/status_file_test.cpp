#include "report/status_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <fstream>

#include "base/json.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace bev {
namespace {

using test::expect_error;

RunStatus full() {
  return {.phase = RunPhase::Evaluating,
          .phase_since = 1000.5,
          .started = 900,
          .updated = 1001,
          .host = "node7",
          .process = {.pid = 4711, .start = 123456, .machine = "abc pid:[1]"},
          .program = "bevatron 0.1.0",
          .device = "cuda, bf16",
          .layout = "4 ranks",
          .ranks = 4,
          .iteration = 1200,
          .iterations = 10000,
          .iteration_time = 1000.25,
          .samples = 9600,
          .loss = 2.5,
          .valid_loss = 2.75,
          .losses = {{"lm", 2}, {"sop", 0.5}},
          .valid_losses = {{"lm", 2.25}, {"sop", 0.5}},
          .grad_norm = 0.5,
          .learning_rate = 3e-4,
          .rate_factor = 0.5,
          .tokens_per_second = 22388.5,
          .seconds_per_iteration = 0.52,
          .seconds_left = 4576,
          .device_bytes = 1e10,
          .host_bytes = 1e9,
          .checkpoint = "run/checkpoints/iter_0001000",
          .checkpoint_iteration = 1000,
          .checkpoint_time = 990,
          .save_failure = "no room",
          .skipped = 1,
          .spikes = 2,
          .rollbacks = 3,
          .last_event = "a spike",
          .last_event_time = 950,
          .slowest = "3 (+12.3 %)",
          .ending = "complete",
          .exit_code = 6};
}

// Fails when the reader trusts the number or the kind of the losses.
TEST(RunStatus, RefusesLossesThatAreNone) {
  EXPECT_TRUE(std::isnan(parse_status(R"({"losses": {"lm": null}})", "s").losses[0].mean));
  EXPECT_THROW(parse_status(R"({"losses": {"lm": "low"}})", "s"), Error);
  EXPECT_THROW(parse_status(R"({"losses": [1]})", "s"), Error);
  EXPECT_THROW(
      parse_status(R"({"losses": {"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1}})", "s"),
      Error);
}

TEST(RunStatus, ComesBackAsItWas) {
  const RunStatus status = full();
  EXPECT_EQ(parse_status(to_text(status), "s"), status);
  EXPECT_EQ(parse_status(to_text(RunStatus{}), "s"), RunStatus{});
}

TEST(RunStatus, EveryMemberIsInTheFile) {
  // Each differs from its default in full(), so one that the list forgets would come back changed;
  // one with a name used twice would make the object smaller.
  const Json json = Json::parse(to_text(full()));
  EXPECT_EQ(json.size(), 40u);
  EXPECT_EQ(json.at("phase"), "evaluating");
  EXPECT_EQ(json.at("pid"), 4711);
}

TEST(RunStatus, OtherVersionsHaveOtherMembers) {
  const RunStatus status =
      parse_status(R"({"iteration": 5, "a member of later": [1, {}], "loss": null})", "s");
  EXPECT_EQ(status.iteration, 5);
  EXPECT_EQ(status.phase, RunPhase::Starting);
  EXPECT_FALSE(status.loss);
}

TEST(RunStatus, NumbersThatAreNotFiniteAreAbsent) {
  RunStatus status;
  status.loss = NAN;
  status.grad_norm = HUGE_VAL;
  status = parse_status(to_text(status), "s");
  EXPECT_FALSE(status.loss);
  EXPECT_FALSE(status.grad_norm);
}

TEST(RunStatus, WhatMakesNoSenseIsRefusedByName) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"iteration": -1})", "iteration = -1 is not a whole number"},
      {R"({"iteration": 1.5})", "iteration = 1.5 is not a whole number"},
      {R"({"pid": "7"})", "pid = \"7\" is not a whole number"},
      {R"({"samples": 9223372036854775808})",
       "samples = 9223372036854775808 is not a whole number"},
      {R"({"loss": "low"})", "loss = \"low\" is not a finite number"},
      {R"({"started": -5})", "started = -5 is not a number from 0"},
      {R"({"updated": 1e300})", "updated = 1e+300 is not a number from 0"},
      {R"({"host": 5})", "host = 5 is not a string"},
      {R"({"phase": "dancing"})", "phase = \"dancing\" is not one of the phases"},
      {R"({"phase": 3})", "phase = 3 is not one of the phases"},
      {R"([1])", "not a JSON object"},
      {R"({"iteration": 5, "lo)", "not valid JSON"},
      {"", "not valid JSON"},
  };
  for (const auto& [text, words] : cases) {
    const std::string message =
        expect_error(ErrorKind::Data, words, [&] { parse_status(text, "run/status.json"); });
    EXPECT_NE(message.find("run/status.json"), std::string::npos) << message;
  }
}

TEST(RunStatus, TextsAreHarmless) {
  const RunStatus status =
      parse_status(R"({"host": "a\u001b[2J\nb\u007f\u009bc", "ending": "\u00e9"})", "s");
  EXPECT_EQ(status.host, "a [2J b   c");
  EXPECT_EQ(status.ending, "\xC3\xA9");
  const std::string longer(5000, 'x');
  EXPECT_EQ(parse_status("{\"host\": \"" + longer + "\"}", "s").host.size(), 4096u);
  // Not cut within a character.
  EXPECT_EQ(harmless("ab\xC3\xA9", 3), "ab");
  EXPECT_EQ(harmless("ab\xC3\xA9", 4), "ab\xC3\xA9");
}

TEST(RunStatus, OfAFile) {
  const test::TemporaryDirectory dir;
  EXPECT_FALSE(read_status(dir / "status.json"));
  std::ofstream(dir / "status.json") << to_text(full());
  EXPECT_EQ(read_status(dir / "status.json"), full());
  std::ofstream(dir / "status.json") << std::string((1 << 20) + 1, ' ');
  expect_error(ErrorKind::Data, "at most 1048576 are read",
               [&] { read_status(dir / "status.json"); });
}

TEST(RunStatus, APipeInItsPlaceBlocksNobody) {
  const test::TemporaryDirectory dir;
  ASSERT_EQ(::mkfifo((dir / "status.json").c_str(), 0600), 0);
  expect_error(ErrorKind::Data, "is a pipe", [&] { read_status(dir / "status.json"); });
  std::filesystem::create_directory(dir / "folder");
  expect_error(ErrorKind::Data, "is a folder", [&] { read_status(dir / "folder"); });
}

}  // namespace
}  // namespace bev
