// What decides an update: overflow, loss scale, clipping, learning rate. The state lives in device
// memory, because on an asynchronous device the host learns of a step late; one rule serves all
// devices.
#pragma once

#include "ops/schedule.h"

namespace bev {

// The factor of the loss in the backward pass, which keeps small fp16 gradients above zero.
struct LossScaling {
  double initial = 1, minimum = 1;
  double growth = 2, backoff = 0.5;
  bool adapts = false;     // else the factor never changes
  double window = 1000;    // it grows when this many steps had no overflow; not whole: never
  int64_t hysteresis = 2;  // overflows until it falls; refilled when it grows
  bool operator==(const LossScaling&) const = default;
};

// Entries of the state, all f64.
enum UpdateState : int {
  kLossScale = 0,
  kStepsWithoutOverflow,
  kHysteresisLeft,
  kAppliedSteps,
  kScheduledSamples,  // of applied steps
  kHalted,            // 1 after a failure that ends the run: nothing is applied any more
  kUpdateStates
};

// What one step decided, all f64.
enum UpdateDecision : int {
  kFactor = 0,   // of every gradient: unscales and clips
  kApplied,      // 1, or 0 when the norm is not finite: nothing is updated
  kRate,         // learning rate of this step
  kWeightDecay,  // of this step
  kStepNumber,   // of applied steps, counted from 1
  kNorm,         // of the unscaled gradient, before clipping
  kUsedScale,    // loss scale of this step
  kNextRate,     // learning rate of the next step
  kUpdateDecisions
};

struct UpdateRule {
  double max_norm = 0;  // 0: no clipping
  int64_t samples = 0;  // of this step
  // What the loss was divided by for the gradient, where the weight of all tokens was not known
  // yet; the update makes up for it. 0: by that weight.
  double divisor = 0;
  bool halts = false;  // a loss or norm that is not finite ends the run, unless the scale adapts
  LossScaling scaling{};
  ScheduleSpec schedule{};
};

BEV_HOST_DEVICE inline void start_updates(const LossScaling& scaling, double* state) {
  state[kLossScale] = scaling.initial;
  state[kStepsWithoutOverflow] = 0;
  state[kHysteresisLeft] = static_cast<double>(scaling.hysteresis);
  state[kAppliedSteps] = 0;
  state[kScheduledSamples] = 0;
  state[kHalted] = 0;
}

// Megatron-LM's law: an overflow uses up hysteresis, and once that is gone each overflow lowers the
// scale; hysteresis comes back only when the scale grows. The scale is an f32 number.
BEV_HOST_DEVICE inline void adapt_scale(const LossScaling& s, bool overflow, double* state) {
  if (!s.adapts) return;
  if (overflow) {
    state[kStepsWithoutOverflow] = 0;
    state[kHysteresisLeft] -= 1;
    if (state[kHysteresisLeft] > 0) return;
    state[kLossScale] = std::fmax(
        static_cast<double>(static_cast<float>(state[kLossScale] * s.backoff)), s.minimum);
    return;
  }
  state[kStepsWithoutOverflow] += 1;
  if (state[kStepsWithoutOverflow] != s.window) return;
  state[kStepsWithoutOverflow] = 0;
  state[kHysteresisLeft] = static_cast<double>(s.hysteresis);
  state[kLossScale] = static_cast<double>(static_cast<float>(state[kLossScale] * s.growth));
}

// norm_squared: of the gradient as it stands, multiplied by the loss scale. loss: of this step, the
// sum of weighted token losses and the sum of weights.
BEV_HOST_DEVICE inline void decide_update(double norm_squared, const double* loss,
                                          const UpdateRule& rule, double* state, double* decision) {
  const double scale = state[kLossScale];
  const double share = rule.divisor > 0 ? rule.divisor / std::fmax(loss[1], 1.0) : 1;
  const double norm = std::sqrt(norm_squared) / scale * share;
  const bool finite_norm = norm - norm == 0, finite_loss = loss[0] - loss[0] == 0;
  const bool applied = finite_norm && finite_loss && state[kHalted] == 0;
  const double clip = rule.max_norm > 0 ? std::fmin(1.0, rule.max_norm / (norm + 1e-6)) : 1;
  const auto position = static_cast<int64_t>(state[kScheduledSamples]);
  decision[kFactor] = applied ? clip / scale * share : 0;
  decision[kApplied] = applied ? 1 : 0;
  decision[kRate] = learning_rate(rule.schedule, position);
  decision[kWeightDecay] = weight_decay(rule.schedule, position);
  decision[kStepNumber] = state[kAppliedSteps] + 1;
  decision[kNorm] = norm;
  decision[kUsedScale] = scale;
  if (applied) {
    state[kAppliedSteps] += 1;
    state[kScheduledSamples] += static_cast<double>(rule.samples);
  }
  if (rule.halts && !(finite_loss && (finite_norm || rule.scaling.adapts))) state[kHalted] = 1;
  adapt_scale(rule.scaling, !applied, state);
  decision[kNextRate] =
      learning_rate(rule.schedule, static_cast<int64_t>(state[kScheduledSamples]));
}

}  // namespace bev
