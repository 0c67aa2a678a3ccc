// One optimizer step.
#pragma once

#include <span>

#include "optim/lr_schedule.h"
#include "train/assembly.h"

namespace bev {

struct StepResult {
  double loss = 0;       // mean over the valid tokens of the batch
  double grad_norm = 0;  // before clipping
  double lr = 0;         // this update's
  double next_lr = 0;    // the next one's
  bool applied = false;  // false: the norm is not finite, parameters and moments are untouched
};

class Stepper {
 public:
  Stepper(Assembly& assembly, const ScheduleSpec& schedule);

  // Trains on the micro-batches of one step. The learning rate follows the samples of applied
  // steps.
  StepResult step(std::span<const HostBatch> batches);

  int64_t applied_steps() const { return applied_steps_; }
  int64_t scheduled_samples() const { return scheduled_samples_; }

 private:
  Assembly& assembly_;
  ScheduleSpec schedule_;
  Buffer scalars_;
  Tensor norm_squared_, control_;  // f64 [1], f64 [2]
  int64_t applied_steps_ = 0, scheduled_samples_ = 0;
};

}  // namespace bev
