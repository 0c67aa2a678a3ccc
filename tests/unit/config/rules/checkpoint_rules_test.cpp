#include "unit/config/loading.h"

namespace bev {
namespace {

TEST(CheckpointRules, PlainUseIsFine) {
  expect_no_problem(small_model() + Args{"--save", "out", "--save-interval", "100"});
  expect_no_problem(small_model() + Args{"--save", "out", "--train.output="});
  expect_no_problem(small_model() + Args{"--save-interval", "100"});
  expect_no_problem(small_model() + Args{"--load", "out"});
  expect_no_problem(small_model() + Args{"--checkpoint.schedule", "10:100,18:1000,1500"});
}

TEST(CheckpointRules, OneInterval) {
  expect_problem(
      small_model() + Args{"--save-interval", "100", "--checkpoint.schedule", "10:100,50"},
      {"given twice", "checkpoint.interval = 100 (--save-interval)", "10:100,50",
       "one of the two"});
}

TEST(CheckpointRules, ScheduleIsPhases) {
  expect_problem(small_model() + Args{"--checkpoint.schedule", "10:100,18:90"},
                 {"not a list of phases", "phase 2, \"18:90\"", "not above 100",
                  "such as 10:100,18:1000,1500"});
}

TEST(CheckpointRules, ExceptionsFromKeepNeedIt) {
  expect_problem(
      small_model() + Args{"--checkpoint.keep_best", "2"},
      {"checkpoint.keep_best says what stays", "keep = 0 (default)", "checkpoint.keep 1 or more"});
  expect_no_problem(small_model() + Args{"--save-retain-interval", "1000"});
  expect_no_problem(small_model() + Args{"--save-retain-interval", "1000", "--checkpoint.keep", "1",
                                         "--checkpoint.keep_best", "2"});
}

TEST(CheckpointRules, SavingHasAFolder) {
  expect_problem(small_model() + Args{"--save-interval", "100", "--train.output="},
                 {"no folder for checkpoints", "checkpoint.interval = 100", "train.output = \"\"",
                  "checkpoint.save FOLDER"});
  expect_problem(small_model() + Args{"--checkpoint.schedule", "100", "--train.output="},
                 {"no folder for checkpoints", "checkpoint.schedule = \"100\""});
  expect_no_problem(small_model() +
                    Args{"--save-interval", "100", "--save", "out", "--train.output="});
}

TEST(CheckpointRules, HowToLoadNeedsSomethingToLoad) {
  const std::pair<std::string, Args> cases[] = {
      {"checkpoint.step", {"--ckpt-step", "100"}},
      {"checkpoint.must_exist", {"--exit-on-missing-checkpoint"}},
      {"checkpoint.finetune", {"--finetune"}},
      {"checkpoint.load_optimizer", {"--no-load-optim"}},
      {"checkpoint.load_random", {"--no-load-rng"}},
      {"checkpoint.scheduler", {"--override-opt_param-scheduler"}},
      {"checkpoint.scheduler", {"--use-checkpoint-opt_param-scheduler"}},
  };
  for (const auto& [path, flags] : cases) {
    expect_problem(small_model() + flags,
                   {path + " is given, but nothing is loaded", flags[0], "checkpoint.load FOLDER"});
    expect_no_problem(small_model() + flags + Args{"--load", "out"});
  }
}

TEST(CheckpointRules, FinetuneFromAStep) {
  expect_no_problem(small_model() + Args{"--load", "out", "--finetune", "--ckpt-step", "100"});
}

}  // namespace
}  // namespace bev
