// Learning rate and weight decay as pure functions of the position of the run, by Megatron-LM's
// laws. The position x counts the samples of applied optimizer steps: the step about to run uses
// the rate at x, so the first step of a warm-up from 0 has rate 0, and a skipped step does not move
// x.
#pragma once

#include <cstdint>

#include "config/config.h"

namespace bev {

struct ScheduleSpec {
  double init_lr = 0, max_lr = 0, min_lr = 0;
  double warmup = 0;  // samples; not whole when it is a fraction of `decay`
  int64_t decay = 0;  // samples until min_lr, the warm-up included
  LrDecay style = LrDecay::Linear;
  WsdDecay wsd_style = WsdDecay::Exponential;
  int64_t wsd = 0;  // samples of the final decay; used by LrDecay::Wsd only

  double start_wd = 0, end_wd = 0;
  DecayRamp wd_ramp = DecayRamp::Constant;
  int64_t wd_length = 0;  // samples from start_wd to end_wd

  bool operator==(const ScheduleSpec&) const = default;
};

// Up to `warmup`: linear from init_lr to max_lr. Then Constant stays at max_lr for ever; the others
// are min_lr beyond `decay` and before it, with r = (x - warmup) / (decay - warmup):
//   Linear             min + (max - min) (1 - r)
//   Cosine             min + (max - min) (cos(pi r) + 1) / 2
//   InverseSquareRoot  max(min, max sqrt(max(warmup, 1)) / sqrt(max(x, 1)))
//   Wsd                max until decay - wsd, then min + (max - min) f(q), q = (x - decay + wsd) /
//   wsd;
//                      f: 1 - q, (cos(pi q) + 1) / 2, 2 * 0.5^q - 1, 1 - sqrt(q)
// REQUIRES: x >= 0.
double learning_rate(const ScheduleSpec& spec, int64_t x);

// From start_wd to end_wd over wd_length, linear or along half a cosine; end_wd beyond it.
// REQUIRES: x >= 0.
double weight_decay(const ScheduleSpec& spec, int64_t x);

// Megatron-LM's rules for a command line: a run given in iterations counts lengths in iterations
// times the global batch, a run given in samples counts samples; what is not given follows from the
// length of the run; the warm-up may be a fraction of the decay length; the weight decay ramp lasts
// the whole run. Throws a Usage error when the lengths contradict each other.
ScheduleSpec schedule_from(const Config& config, int64_t global_batch, int64_t iterations);

}  // namespace bev
