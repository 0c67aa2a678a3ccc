// The loss scale of fp16 training: a factor of the loss in the backward pass, which keeps small
// gradients above zero.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/cuda_macros.h"

namespace bev {

struct LossScaling {
  double initial = 1, minimum = 1;
  double growth = 2, backoff = 0.5;
  bool adapts = false;     // else the factor never changes
  double window = 1000;    // it grows when this many steps had no overflow; not whole: never
  int64_t hysteresis = 2;  // overflows until it falls; refilled when it grows
  bool operator==(const LossScaling&) const = default;
};

struct LossScaleState {
  double *scale, *steps_without_overflow, *hysteresis_left;
};

// Megatron-LM's rule: an overflow uses up hysteresis, and once that is gone each overflow lowers
// the scale; hysteresis comes back only when the scale grows. The scale is an f32 number.
BEV_HOST_DEVICE inline void adapt_loss_scale(const LossScaling& scaling, bool overflow,
                                             const LossScaleState& state) {
  if (!scaling.adapts) return;
  if (overflow) {
    *state.steps_without_overflow = 0;
    *state.hysteresis_left -= 1;
    if (*state.hysteresis_left > 0) return;
    *state.scale = std::fmax(
        static_cast<double>(static_cast<float>(*state.scale * scaling.backoff)), scaling.minimum);
    return;
  }
  *state.steps_without_overflow += 1;
  if (*state.steps_without_overflow != scaling.window) return;
  *state.steps_without_overflow = 0;
  *state.hysteresis_left = static_cast<double>(scaling.hysteresis);
  *state.scale = static_cast<double>(static_cast<float>(*state.scale * scaling.growth));
}

}  // namespace bev
