#include "train/step.h"

#include <cmath>

#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/update.h"

namespace bev {

Stepper::Stepper(Assembly& assembly, const ScheduleSpec& schedule)
    : assembly_(assembly),
      schedule_(schedule),
      scalars_(assembly.device, 3 * sizeof(double), "scalars") {
  std::byte* second = scalars_.data() != nullptr ? scalars_.data() + sizeof(double) : nullptr;
  norm_squared_ = tensor_over(scalars_.data(), DType::f64, {1});
  control_ = tensor_over(second, DType::f64, {2});
}

StepResult Stepper::step(std::span<const HostBatch> batches) {
  double valid = 0;
  int64_t samples = 0;
  for (const HostBatch& batch : batches) {
    valid += batch.valid_tokens();
    samples += batch.sequences;
  }
  Exec ex = assembly_.executor.exec();
  assembly_.grads.begin_step(ex);
  const LossSum sum = assembly_.executor.train(batches, 1.0 / std::max(valid, 1.0));

  ops::fill(ex, {.out = norm_squared_, .value = 0});
  ops::squared_norm(ex, {.x = assembly_.grads.flat(), .out = norm_squared_});
  ops::update_control(ex, {.norm_squared = norm_squared_,
                           .max_norm = assembly_.config.optim.clip,
                           .control = control_});
  const double lr = learning_rate(schedule_, scheduled_samples_);
  assembly_.optimizer->step(ex, {.step = applied_steps_ + 1,
                                 .lr = lr,
                                 .weight_decay = weight_decay(schedule_, scheduled_samples_),
                                 .control = control_});

  double norm_squared = 0, control[2] = {1, 1};
  assembly_.device.download(norm_squared_.data, &norm_squared, sizeof(norm_squared));
  assembly_.device.download(control_.data, control, sizeof(control));
  const bool applied = control[1] != 0;
  if (applied) {
    ++applied_steps_;
    scheduled_samples_ += samples;
  }
  return {.loss = sum.loss / std::max(sum.weight, 1.0),
          .grad_norm = std::sqrt(norm_squared),
          .lr = lr,
          .next_lr = learning_rate(schedule_, scheduled_samples_),
          .applied = applied};
}

}  // namespace bev
