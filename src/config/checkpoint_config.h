// What is kept of a run while it goes on, and what a run continues from.
#pragma once

#include <string>

#include "config/choices.h"
#include "config/parse/describe.h"
#include "config/parse/value.h"

namespace bev {

// clang-format off: a line per field reads as a table

struct CheckpointConfig {
  std::string save, load;
  int64_t interval = 0;
  std::string schedule;
  bool asynchronous = true, save_optimizer = true;
  int64_t keep = 0, keep_every = 0, keep_best = 0;
  int64_t step = 0;
  bool must_exist = false, finetune = false;
  bool load_optimizer = true, load_random = true;
  SchedulerSource scheduler = SchedulerSource::Same;

  template <class S, class V>
  static void describe(S& s, V& v) {
    v("save", s.save, {.help = "folder for checkpoints; empty: checkpoints/ in train.output where interval or schedule asks for them, else none", .aliases = {{"--save"}}});
    v("interval", s.interval, {.help = "iterations between checkpoints; 0: only at the end, where save is given", .min = 0, .max = 1e15, .aliases = {{"--save-interval"}, {"--persistent-save-interval"}}});
    v("schedule", s.schedule, {.help = "intervals by phase instead of one, each counted from where the phase before it ends, such as 10:100,18:1000,1500: every 10 until 100, every 18 until 1000, then every 1500; these checkpoints are not removed by keep"});
    v("asynchronous", s.asynchronous, {.help = "write while the training goes on, from a copy in host memory; false: the training waits, and no copy is made", .aliases = {{"--async-save", "true"}}});
    v("save_optimizer", s.save_optimizer, {.help = "write the optimizer's state too; without it a run can only begin anew from the weights", .aliases = {{"--no-save-optim", "false"}}});
    v("keep", s.keep, {.help = "how many of the newest checkpoints stay; 0: all, or with keep_every the newest one", .min = 0, .max = 1e9});
    v("keep_every", s.keep_every, {.help = "of the others, those at multiples of so many iterations stay too; 0: none", .min = 0, .max = 1e15, .aliases = {{"--save-retain-interval"}}});
    v("keep_best", s.keep_best, {.help = "and so many with the lowest validation loss", .min = 0, .max = 1e9});
    v("load", s.load, {.help = "continue from the newest good checkpoint in this folder: of checkpoints, of a run, or of one checkpoint; where there is none yet, start anew", .aliases = {{"--load"}}});
    v("step", s.step, {.help = "continue from the checkpoint of this iteration; 0: from the newest", .min = 0, .max = 1e15, .aliases = {{"--ckpt-step"}}});
    v("must_exist", s.must_exist, {.help = "it is an error when there is nothing to load", .aliases = {{"--exit-on-missing-checkpoint", "true"}}});
    v("finetune", s.finetune, {.help = "take only the weights, and begin with iteration 1 and the first sample", .aliases = {{"--finetune", "true"}}});
    v("load_optimizer", s.load_optimizer, {.help = "continue with the optimizer's state and the position in the learning rate's schedule; false: both start anew", .aliases = {{"--no-load-optim", "false"}}});
    v("load_random", s.load_random, {.help = "dropout goes on with the seed of the checkpoint; false: with train.seed", .aliases = {{"--no-load-rng", "false"}}});
    v("scheduler", s.scheduler, {.help = "where the schedule of learning rate and weight decay differs from the checkpoint's. same: refuse, new: follow this configuration, checkpoint: follow the checkpoint", .aliases = {{"--override-opt_param-scheduler", "new"}, {"--override-opt-param-scheduler", "new"}, {"--override-lr-scheduler", "new"}, {"--use-checkpoint-opt_param-scheduler", "checkpoint"}, {"--use-checkpoint-opt-param-scheduler", "checkpoint"}, {"--use-checkpoint-lr-scheduler", "checkpoint"}}});
  }
};

// clang-format on

}  // namespace bev
