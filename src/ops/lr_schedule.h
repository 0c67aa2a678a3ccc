// Learning rate and weight decay as pure functions of the position of the run, by Megatron-LM's
// laws. The position x counts the samples of applied optimizer steps: the step about to run uses
// the rate at x, so the first step of a warm-up from 0 has rate 0, and a skipped step does not move
// x. Devices evaluate them too: only they know in time whether a step was applied.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/cuda_macros.h"
#include "config/choices.h"

namespace bev {

struct LrSchedule {
  double init_lr = 0, max_lr = 0, min_lr = 0;
  double warmup = 0;  // samples; not whole when it is a fraction of `decay`
  int64_t decay = 0;  // samples until min_lr, the warm-up included
  LrDecay style = LrDecay::Linear;
  WsdDecay wsd_style = WsdDecay::Exponential;
  int64_t wsd = 0;  // samples of the final decay; used by LrDecay::Wsd only

  double start_wd = 0, end_wd = 0;
  DecayRamp wd_ramp = DecayRamp::Constant;
  int64_t wd_length = 0;  // samples from start_wd to end_wd

  bool operator==(const LrSchedule&) const = default;
};

// 1 at ratio 0, 0 at ratio 1, along half a cosine.
BEV_HOST_DEVICE inline double half_cosine(double ratio) {
  constexpr double kPi = 3.14159265358979323846;
  return 0.5 * (std::cos(kPi * ratio) + 1.0);
}

BEV_HOST_DEVICE inline double wsd_factor(const LrSchedule& s, double x) {
  const auto start = static_cast<double>(s.decay - s.wsd);
  if (x <= start) return 1.0;
  const double ratio = (x - start) / static_cast<double>(s.wsd);
  switch (s.wsd_style) {
    case WsdDecay::Linear: return 1.0 - ratio;
    case WsdDecay::Cosine: return half_cosine(ratio);
    case WsdDecay::Exponential: return 2.0 * std::pow(0.5, ratio) - 1.0;
    case WsdDecay::MinusSqrt: return 1.0 - std::sqrt(ratio);
  }
  return 1.0;
}

// Up to `warmup`: linear from init_lr to max_lr. Then Constant stays at max_lr for ever; the others
// are min_lr beyond `decay` and before it, with r = (x - warmup) / (decay - warmup):
//   Linear             min + (max - min) (1 - r)
//   Cosine             min + (max - min) (cos(pi r) + 1) / 2
//   InverseSquareRoot  max(min, max sqrt(max(warmup, 1)) / sqrt(max(x, 1)))
//   Wsd                max until decay - wsd, then min + (max - min) f(q), q = (x - decay + wsd) /
//   wsd;
//                      f: 1 - q, (cos(pi q) + 1) / 2, 2 * 0.5^q - 1, 1 - sqrt(q)
// REQUIRES: x >= 0.
BEV_HOST_DEVICE inline double learning_rate(const LrSchedule& s, int64_t position) {
  const auto x = static_cast<double>(position);
  if (s.warmup > 0 && x <= s.warmup) return s.init_lr + (s.max_lr - s.init_lr) * x / s.warmup;
  if (s.style == LrDecay::Constant) return s.max_lr;
  if (position > s.decay) return s.min_lr;
  const double ratio = (x - s.warmup) / (static_cast<double>(s.decay) - s.warmup);
  const double range = s.max_lr - s.min_lr;
  switch (s.style) {
    case LrDecay::Constant: return s.max_lr;
    case LrDecay::Linear: return s.min_lr + (1.0 - ratio) * range;
    case LrDecay::Cosine: return s.min_lr + half_cosine(ratio) * range;
    case LrDecay::InverseSquareRoot:
      return std::fmax(
          s.min_lr, s.max_lr * std::sqrt(std::fmax(s.warmup, 1.0)) / std::sqrt(std::fmax(x, 1.0)));
    case LrDecay::Wsd: return s.min_lr + wsd_factor(s, x) * range;
  }
  return s.max_lr;
}

// From start_wd to end_wd over wd_length, linear or along half a cosine; end_wd beyond it.
// REQUIRES: x >= 0.
BEV_HOST_DEVICE inline double weight_decay(const LrSchedule& s, int64_t position) {
  if (s.wd_ramp == DecayRamp::Constant || position > s.wd_length) return s.end_wd;
  const double ratio = static_cast<double>(position) / static_cast<double>(s.wd_length);
  const double factor = s.wd_ramp == DecayRamp::Linear ? ratio : half_cosine(1.0 - ratio);
  return s.start_wd + factor * (s.end_wd - s.start_wd);
}

}  // namespace bev
