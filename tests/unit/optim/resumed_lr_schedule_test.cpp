#include <gtest/gtest.h>

#include <cmath>

#include "config/config_diff.h"
#include "optim/lr_schedule_config.h"
#include "support/expect_error.h"

namespace bev {
namespace {

using test::expect_error;

// 100 iterations of 8 samples.
Config small_run() {
  Config config;
  config.train.iterations = 100;
  config.train.micro_batch = 8;
  config.optim.lr = 1e-3;
  config.optim.min_lr = 1e-4;
  config.optim.warmup_iterations = 10;
  return config;
}

LrSchedule schedule_of(const Config& config) {
  return lr_schedule_from(config, config.train.micro_batch, config.train.iterations);
}

StoredConfig checkpoint_of(const Config& config) {
  StoredConfig stored = stored_config(config);
  store_schedule(schedule_of(config), stored);
  return stored;
}

ResumedLrSchedule resumed(const Config& before, const Config& now) {
  return resumed_schedule(checkpoint_of(before), now, "out/step-10");
}

TEST(StoredSchedule, ReadsBackToTheBit) {
  const LrSchedule specs[] = {
      {.max_lr = 1e-3, .decay = 1},
      {.init_lr = 5e-324,
       .max_lr = std::nextafter(0.1, 1.0),
       .min_lr = 1.0 / 3,
       .warmup = 12.345678901234567,
       .decay = 999'999'999'999'999'999,
       .style = LrDecay::Wsd,
       .wsd_style = WsdDecay::MinusSqrt,
       .wsd = 7,
       .start_wd = 0.1,
       .end_wd = 0.3,
       .wd_ramp = DecayRamp::Cosine,
       .wd_length = 11},
  };
  for (const LrSchedule& spec : specs) {
    StoredConfig stored;
    store_schedule(spec, stored);
    EXPECT_EQ(load_lr_schedule(stored, "step-10"), spec);
  }
}

TEST(StoredSchedule, NonsenseNamesSourceAndEntry) {
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"schedule.max_lr", "fast",
       "step-10: invalid learning-rate schedule: schedule.max_lr = \"fast\", expected a number of "
       "at least 0"},
      {"schedule.max_lr", "-1.0", "schedule.max_lr"},
      {"schedule.max_lr", "inf", "schedule.max_lr"},
      {"schedule.decay", "1.5", "schedule.decay"},
      {"schedule.decay", "0", "contradict each other"},
      {"schedule.warmup", "800.0", "contradict each other"},
      {"schedule.style", "\"WSD\"", "contradict each other"},
      {"schedule.style", "linear", "one of the choices"},
      {"schedule.style", "\"\"", "one of the choices"},
  };
  for (const auto& [path, text, message] : cases) {
    StoredConfig stored = checkpoint_of(small_run());
    stored[path] = text;
    expect_error(ErrorKind::Data, message, [&] { load_lr_schedule(stored, "step-10"); });
  }
  expect_error(ErrorKind::Data, "schedule.max_lr (optim.lr) is missing",
               [&] { load_lr_schedule(stored_config(small_run()), "step-10"); });
}

TEST(ResumedLrSchedule, TheSameGoesOn) {
  const ResumedLrSchedule same = resumed(small_run(), small_run());
  EXPECT_EQ(same.spec, schedule_of(small_run()));
  EXPECT_TRUE(same.changes.empty());
}

TEST(ResumedLrSchedule, AnotherIsRefusedWithAllThatDiffers) {
  Config now = small_run();
  now.optim.lr = 2e-3;
  now.train.iterations = 200;
  const std::string message =
      expect_error(ErrorKind::Usage, "out/step-10", [&] { resumed(small_run(), now); });
  for (const char* text :
       {"optim.lr = 0.002 (was 0.001)", "samples until optim.min_lr = 1600 (was 800)",
        "new follows this configuration (--override-opt_param-scheduler)",
        "checkpoint keeps the old schedule (--use-checkpoint-opt_param-scheduler)"})
    EXPECT_NE(message.find(text), std::string::npos) << text << " is not in\n" << message;
  EXPECT_EQ(message.find("warm-up"), std::string::npos) << message;
}

TEST(ResumedLrSchedule, NewFollowsTheConfigurationAndSaysWhatChanged) {
  Config now = small_run();
  now.optim.lr = 2e-3;
  now.optim.decay = LrDecay::Cosine;
  now.checkpoint.scheduler = SchedulerSource::New;
  const ResumedLrSchedule it = resumed(small_run(), now);
  EXPECT_EQ(it.spec, schedule_of(now));
  EXPECT_EQ(it.changes, (std::vector<std::string>{"optim.lr = 0.002 (was 0.001)",
                                                  "optim.decay = \"cosine\" (was \"linear\")"}));
}

TEST(ResumedLrSchedule, CheckpointFollowsTheCheckpointWhateverTheRunHas) {
  Config now = small_run();
  now.optim.lr = 2e-3;
  now.optim.weight_decay = 0.5;
  now.train.iterations = 333;
  now.train.micro_batch = 7;  // 800 samples are no whole number of such iterations
  now.checkpoint.scheduler = SchedulerSource::Checkpoint;
  const ResumedLrSchedule it = resumed(small_run(), now);
  EXPECT_EQ(it.spec, schedule_of(small_run()));
  EXPECT_TRUE(it.changes.empty());
  // What that run saves carries the schedule on, though its fields say another.
  StoredConfig stored = stored_config(now);
  store_schedule(it.spec, stored);
  EXPECT_EQ(resumed_schedule(stored, now, "out/step-20").spec, schedule_of(small_run()));
}

TEST(ResumedLrSchedule, StartsAnewWithTheOptimizer) {
  Config now = small_run();
  now.optim.lr = 2e-3;
  for (const SchedulerSource source : {SchedulerSource::Same, SchedulerSource::Checkpoint}) {
    now.checkpoint = {};
    now.checkpoint.scheduler = source;
    now.checkpoint.load_optimizer = false;
    EXPECT_EQ(resumed(small_run(), now).spec, schedule_of(now));
    now.checkpoint.load_optimizer = true;
    now.checkpoint.finetune = true;
    EXPECT_EQ(resumed(small_run(), now).spec, schedule_of(now));
  }
}

// As long as the decay has its own length, a run may become longer.
TEST(ResumedLrSchedule, WhatHasNoEffectIsNotCompared) {
  Config before = small_run(), now = small_run();
  before.optim.decay_iterations = now.optim.decay_iterations = 80;
  now.train.iterations = 200;
  EXPECT_TRUE(resumed(before, now).changes.empty()) << "constant weight decay has no length";
  now.optim.wsd_iterations = 20;
  EXPECT_TRUE(resumed(before, now).changes.empty()) << "only WSD has a final decay";

  before.optim.decay = now.optim.decay = LrDecay::Constant;
  now.optim.min_lr = 1e-5;
  now.optim.decay_iterations = 90;
  EXPECT_TRUE(resumed(before, now).changes.empty()) << "a constant rate has no end";

  before.optim.warmup_iterations = now.optim.warmup_iterations = 0;
  now.optim.warmup_init = 1e-5;
  EXPECT_TRUE(resumed(before, now).changes.empty()) << "without a warm-up it starts at lr";
}

TEST(ResumedLrSchedule, WhatHasAnEffectIsCompared) {
  using Change = void (*)(Config&);
  const Change changes[] = {
      [](Config& c) { c.optim.lr = 2e-3; },
      [](Config& c) { c.optim.min_lr = 2e-4; },
      [](Config& c) { c.optim.warmup_init = 1e-6; },
      [](Config& c) { c.optim.warmup_iterations = 11; },
      [](Config& c) { c.optim.decay = LrDecay::Cosine; },
      [](Config& c) { c.optim.decay_iterations = 99; },
      [](Config& c) { c.optim.wsd_iterations = 21; },
      [](Config& c) { c.optim.wsd_decay = WsdDecay::Cosine; },
      [](Config& c) { c.optim.start_weight_decay = 0.02; },
      [](Config& c) { c.optim.end_weight_decay = 0.2; },
      [](Config& c) { c.optim.weight_decay_ramp = DecayRamp::Cosine; },
      [](Config& c) { c.train.iterations = 101; },
      [](Config& c) { c.train.micro_batch = 16; },
  };
  Config before = small_run();
  before.optim.decay = LrDecay::Wsd;
  before.optim.wsd_iterations = 20;
  before.optim.weight_decay_ramp = DecayRamp::Linear;
  before.optim.start_weight_decay = 0.01;
  before.optim.end_weight_decay = 0.1;
  for (const Change change : changes) {
    Config now = before;
    now.checkpoint.scheduler = SchedulerSource::New;
    change(now);
    EXPECT_FALSE(resumed(before, now).changes.empty()) << &change - changes;
  }
}

}  // namespace
}  // namespace bev
