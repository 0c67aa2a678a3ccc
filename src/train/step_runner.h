// One optimizer step. Steps are issued, and their results are collected later: on an asynchronous
// device the next step is on its way before the result of the one before is known.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "device/memory.h"
#include "device/timing.h"
#include "ops/update_rule.h"
#include "optim/lr_schedule_config.h"
#include "train/training_state.h"

namespace bev {

// Where the time of a step went on the device, in seconds; zeros where nobody asked.
struct PhaseSeconds {
  double forward_backward = 0, gradients = 0, optimizer = 0;
};

struct StepResult {
  double loss = 0;  // weighted sum of the means
  LossMeans losses{};
  double grad_norm = 0;   // before clipping
  double lr = 0;          // this update's
  double next_lr = 0;     // the next one's
  double loss_scale = 1;  // this step's
  double seconds = 0;     // on the device, since the step before ended (pause(): since it began)
  double waited = 0;      // of those, for other ranks
  PhaseSeconds times{};
  bool applied = false;  // false: parameters and moments are untouched
  // What was found wrong (UpdateFinding), and above what a loss or a norm is a spike (0: it is too
  // early to tell).
  int findings = 0;
  double loss_limit = 0, norm_limit = 0;
};

// The loss scaling a configuration asks for: adapting with fp16, constant otherwise.
LossScaling scaling_from(const Config& config);
// What decides its updates, besides what each step brings.
UpdateRule update_rule_from(const Config& config, const LrSchedule& schedule);

class StepRunner {
 public:
  StepRunner(TrainingState& training, const LrSchedule& schedule);
  ~StepRunner() { training_.executor.set_wait_timer(nullptr); }
  StepRunner(const StepRunner&) = delete;
  StepRunner& operator=(const StepRunner&) = delete;

  // Where the device learns from it: the work of a step, up to two micro-batches, whose results are
  // thrown away. REQUIRES: in_flight() == 0.
  void autotune(std::span<const HostBatch> batches);

  // Issues a step on the micro-batches, which may change when this returns. The learning rate
  // follows the samples of applied steps. REQUIRES: in_flight() < kMostInFlight.
  void submit(std::span<const HostBatch> batches);
  // Waits for the oldest step not collected. REQUIRES: in_flight() > 0.
  StepResult collect();
  int64_t in_flight() const { return submitted_ - collected_; }
  static constexpr int64_t kMostInFlight = 4;

  // Both at once. REQUIRES: in_flight() == 0.
  StepResult step(std::span<const HostBatch> batches) {
    submit(batches);
    return collect();
  }

  // What decides the next update (ops/update_rule.h). REQUIRES: in_flight() == 0.
  std::array<double, kUpdateStates> state() const;
  // Goes on from there. A loss scale that does not adapt stays the configuration's.
  void resume(std::array<double, kUpdateStates> state);
  // From the next step on the learning rate is `factor` times the scheduled one. REQUIRES:
  // in_flight() == 0.
  void set_lr_scale(double factor);

  // Forward and backward again, for the gradients, which then stand in the buffer, summed over
  // ranks; nothing is updated. REQUIRES: in_flight() == 0.
  void recompute(std::span<const HostBatch> batches);

  // What lies between the last step and the next is not part of a step's time.
  void pause() { last_done_ = {}; }

  // Of collected steps.
  int64_t applied_steps() const { return applied_steps_; }
  int64_t scheduled_samples() const { return scheduled_samples_; }

 private:
  // What comes back from the device.
  struct Report {
    LossSums losses;
    double decision[kUpdateDecisions];
  };
  struct Ticket {
    TimerEvent begun{}, trained{}, reduced{}, done{};  // the two in the middle where they are timed
    int64_t samples = 0;
  };
  Report* report(int64_t number) const;

  TrainingState& training_;
  UpdateRule rule_;
  Buffer scalars_;
  Tensor norm_squared_, state_, decision_;
  PinnedBuffer reports_;
  std::optional<WaitTimer> waits_;  // with several ranks
  std::array<Ticket, kMostInFlight> tickets_{};
  TimerEvent last_done_{};
  int64_t submitted_ = 0, collected_ = 0;
  int64_t applied_steps_ = 0, scheduled_samples_ = 0;
};

}  // namespace bev
