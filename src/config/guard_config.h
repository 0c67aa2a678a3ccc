// What a run watches over, and what it does when something is wrong.
#pragma once

#include "config/choices.h"
#include "config/parse/describe.h"
#include "config/parse/value.h"

namespace bev {

// clang-format off: a line per field reads as a table

struct GuardConfig {
  OnNonFinite nonfinite = OnNonFinite::Stop;
  OnSpike loss_spike = OnSpike::Log, norm_spike = OnSpike::Log;
  double loss_deviations = 6, norm_deviations = 8;
  int64_t window = 128, warmup = 128;
  int64_t skip_before = 0, skip_after = 0, rollbacks = 3;
  int64_t hash_interval = 0;
  OnCorruption corruption = OnCorruption::Stop;

  template <class S, class V>
  static void describe(S& s, V& v) {
    v("nonfinite", s.nonfinite, {.help = "after a loss or gradient that is not finite, whose update is never applied: stop, skip it and go on, or rollback to the last checkpoint and leave its samples out", .aliases = {{"--no-check-for-nan-in-loss-and-grad", "skip"}, {"--check-for-nan-in-loss-and-grad", "stop"}}});
    v("loss_spike", s.loss_spike, {.help = "after a loss far above its running mean: ignore it, log it, skip its update, rollback to the last checkpoint and leave its samples out, or stop", .aliases = {{"--check-for-spiky-loss", "log"}}});
    v("norm_spike", s.norm_spike, {.help = "the same for the norm of the gradient before clipping", .aliases = {{"--check-for-large-grads", "stop"}}});
    v("loss_deviations", s.loss_deviations, {.help = "standard deviations above the running mean from which a loss is a spike", .min = 1, .max = 1e6});
    v("norm_deviations", s.norm_deviations, {.help = "the same for the norm of the gradient", .min = 1, .max = 1e6});
    v("window", s.window, {.help = "iterations that the running mean and deviation look back, with weights that fade", .min = 2, .max = 1e9});
    v("warmup", s.warmup, {.help = "iterations before anything is called a spike", .min = 2, .max = 1e9});
    v("skip_before", s.skip_before, {.help = "rollback: batches left out before the bad one, as far as they are behind the checkpoint", .min = 0, .max = 1e9});
    v("skip_after", s.skip_after, {.help = "rollback: batches left out behind the bad one", .min = 0, .max = 1e9});
    v("rollbacks", s.rollbacks, {.help = "so many rollbacks without a new checkpoint end the run", .min = 1, .max = 1e9});
    v("hash_interval", s.hash_interval, {.help = "iterations between comparisons of the weights that several ranks hold, which find silent corruption; also before each checkpoint; 0: none", .min = 0, .max = 1e15});
    v("corruption", s.corruption, {.help = "when such weights differ: stop, or rollback to the last checkpoint"});
  }
};

// clang-format on

}  // namespace bev
