// What decides an update: overflow, spikes, loss scale, clipping, learning rate. The state lives in
// device memory, because on an asynchronous device the host learns of a step late; one rule serves
// all devices.
#pragma once

#include <array>
#include <cmath>

#include "ops/loss_scale.h"
#include "ops/lr_schedule.h"
#include "ops/spike_rule.h"

namespace bev {

// Losses of a model at most.
inline constexpr int kMostLosses = 8;

// Factors of the losses in their weighted sum.
using LossWeights = std::array<double, kMostLosses>;

// Entries of the state, all f64.
enum UpdateState : int {
  kLossScale = 0,
  kStepsWithoutOverflow,
  kHysteresisLeft,
  kAppliedSteps,
  kScheduledSamples,  // of applied steps
  kHalted,            // 1 after a finding that halts: nothing is applied or counted any more
  kLrScale,           // of the scheduled learning rate; 1 unless somebody changed it
  kWatchedSteps,      // that the running values below are made of
  kLossMean,          // the three of the loss, in this order
  kLossVariance,
  kLossBefore,
  kNormMean,  // likewise
  kNormVariance,
  kNormBefore,
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
  kFindings,     // the sum of what was found wrong
  kLossLimit,    // above which a loss is a spike; 0: not judged yet
  kNormLimit,    // the same for the norm
  kUpdateDecisions
};

// What can be wrong with a step; numbers of their own bits.
enum UpdateFinding : int {
  kLossNotFinite = 1,
  kNormNotFinite = 2,  // where the loss scale adapts this is no finding
  kLossSpike = 4,
  kNormSpike = 8,
};

struct UpdateRule {
  double max_norm = 0;  // 0: no clipping
  int64_t samples = 0;  // of this step
  int losses = 1;
  LossWeights loss_weights{1};
  bool halts = false;  // a loss or norm that is not finite ends the run, unless the scale adapts
  SpikeRule loss_spike{}, norm_spike{};
  double window = 128;  // steps over which the weights of running values fade
  double warmup = 128;  // steps before anything is judged
  LossScaling scaling{};
  LrSchedule schedule{};
};

BEV_HOST_DEVICE inline void reset_update_state(const LossScaling& scaling, double* state) {
  state[kLossScale] = scaling.initial;
  state[kStepsWithoutOverflow] = 0;
  state[kHysteresisLeft] = static_cast<double>(scaling.hysteresis);
  state[kAppliedSteps] = 0;
  state[kScheduledSamples] = 0;
  state[kHalted] = 0;
  state[kLrScale] = 1;
  for (int i = kWatchedSteps; i < kUpdateStates; ++i) state[i] = 0;
}

// norm_squared: of the gradient, which is multiplied by the loss scale. loss: for each loss
// the sum of its values and their number. Guards check the weighted sum of the means.
BEV_HOST_DEVICE inline void decide_update(double norm_squared, const double* loss,
                                          const UpdateRule& rule, double* state, double* decision) {
  const double scale = state[kLossScale];
  const double norm = std::sqrt(norm_squared) / scale;
  double mean_loss = 0;
  for (int i = 0; i < rule.losses; ++i)
    mean_loss +=
        rule.loss_weights[static_cast<size_t>(i)] * (loss[2 * i] / std::fmax(loss[2 * i + 1], 1.0));
  const bool finite_norm = norm - norm == 0, finite_loss = mean_loss - mean_loss == 0;
  const bool is_halted = state[kHalted] != 0;

  const double watched = state[kWatchedSteps];
  const RunningStats losses{&state[kLossMean], &state[kLossVariance], &state[kLossBefore]};
  const RunningStats norms{&state[kNormMean], &state[kNormVariance], &state[kNormBefore]};
  decision[kLossLimit] = spike_limit(rule.loss_spike, rule.warmup, watched, losses);
  decision[kNormLimit] = spike_limit(rule.norm_spike, rule.warmup, watched, norms);
  const bool loss_spike =
      finite_loss && decision[kLossLimit] > 0 && mean_loss > decision[kLossLimit];
  const bool norm_spike = finite_norm && decision[kNormLimit] > 0 && norm > decision[kNormLimit];
  const bool bad_norm = !finite_norm && !rule.scaling.adapts;
  decision[kFindings] = (finite_loss ? 0 : kLossNotFinite) + (bad_norm ? kNormNotFinite : 0) +
                        (loss_spike ? kLossSpike : 0) + (norm_spike ? kNormSpike : 0);
  const bool rejected =
      (loss_spike && rule.loss_spike.rejects) || (norm_spike && rule.norm_spike.rejects);
  const bool halts = (rule.halts && (!finite_loss || bad_norm)) ||
                     (loss_spike && rule.loss_spike.halts) || (norm_spike && rule.norm_spike.halts);
  const bool applied = finite_norm && finite_loss && !rejected && !is_halted;

  const double clip = rule.max_norm > 0 ? std::fmin(1.0, rule.max_norm / (norm + 1e-6)) : 1;
  const auto position = static_cast<int64_t>(state[kScheduledSamples]);
  decision[kFactor] = applied ? clip / scale : 0;
  decision[kApplied] = applied ? 1 : 0;
  decision[kRate] = state[kLrScale] * learning_rate(rule.schedule, position);
  decision[kWeightDecay] = weight_decay(rule.schedule, position);
  decision[kStepNumber] = state[kAppliedSteps] + 1;
  decision[kNorm] = norm;
  decision[kUsedScale] = scale;
  decision[kNextRate] = decision[kRate];
  // After a halt the state is that before the step, which can then be tried again.
  if (is_halted || halts) {
    state[kHalted] = 1;
    return;
  }
  if (applied) {
    state[kAppliedSteps] += 1;
    state[kScheduledSamples] += static_cast<double>(rule.samples);
  }
  if (finite_norm && finite_loss) {
    update_running_stats(mean_loss, decision[kLossLimit], rule.window, watched, losses);
    update_running_stats(norm, decision[kNormLimit], rule.window, watched, norms);
    state[kWatchedSteps] += 1;
  }
  adapt_loss_scale(rule.scaling, !(finite_norm && finite_loss),
                   {&state[kLossScale], &state[kStepsWithoutOverflow], &state[kHysteresisLeft]});
  decision[kNextRate] =
      state[kLrScale] *
      learning_rate(rule.schedule, static_cast<int64_t>(state[kScheduledSamples]));
}

}  // namespace bev
