// GuardPolicy: how a run reacts to bad steps and to replicas that differ (configuration section
// guard): log, skip the update, roll back, or stop.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/sample_ranges.h"
#include "data/data_loader.h"
#include "train/guards.h"
#include "train/run_checkpoints.h"
#include "train/step_runner.h"
#include "train/train_log.h"
#include "train/training_state.h"

namespace bev {

// All ranks make the same calls in the same order. Functions that recompute steps, compare replicas
// or roll back contain collectives and require that no step is in flight.
class GuardPolicy {
 public:
  // `checkpoints`: null: the run cannot roll back. All arguments must outlive this.
  GuardPolicy(TrainingState& state, StepRunner& stepper, std::shared_ptr<const Dataset> samples,
              Checkpointing* checkpoints);

  // Checks the result of a step. False: the device has halted the updates at this step; call
  // recover_from_step().
  bool accept(const SubmittedStep& step, const StepResult& result);
  bool is_halted() const { return halted_.has_value(); }
  // Bad steps that accept() let pass: whether there are any, and their events. take_events()
  // recomputes a step to explain it, unless a recent one was explained.
  bool has_events() const { return !tolerated_.empty(); }
  std::vector<GuardEvent> take_events();

  // Whether to compare replicas after this iteration. `is_saved`: its state will be saved.
  bool is_check_due(int64_t iteration, bool is_saved) const;
  // The first difference between replicas; empty: none, or they are not compared.
  std::string replica_difference();

  // The outcome of a rollback attempt.
  struct Recovery {
    GuardEvent event;
    std::optional<RunPosition> position{};  // of the restored checkpoint; absent: the run ends
  };
  // After accept() returned false.
  Recovery recover_from_step();
  // After replica_difference() returned one. `end`: the data position after the iteration.
  Recovery recover_from_corruption(const std::string& difference, int64_t iteration,
                                   const DataLoader::Position& end);
  // A save has begun. If it succeeds, the count of rollbacks (guard.rollbacks) restarts.
  void count_save() { has_saved_ = true; }

  // Samples that guards excluded, which checkpoints store.
  const SampleRanges& skipped() const { return skipped_; }
  void skip(const SampleRanges& ranges) { skipped_.add(ranges); }
  // Samples that data.skip or guards excluded.
  SampleRanges all_skipped() const;

  int64_t spikes() const { return spikes_; }

 private:
  struct BadStep {
    SubmittedStep step;
    StepResult result;
  };
  GuardEvent event_of(const BadStep& bad, GuardAction action) const;
  // Restores a checkpoint of at most `last_iteration`, and excludes the samples of `bad` (if not
  // null). Absent: not allowed. Appends the outcome to `text`.
  std::optional<RunPosition> roll_back(int64_t last_iteration, const SubmittedStep* bad,
                                       std::string& text);

  TrainingState& state_;
  StepRunner& stepper_;
  Checkpointing* checkpoints_;
  StepDiagnosis diagnosis_;
  std::optional<ReplicaCheck> replicas_;  // with guard.hash_interval
  SampleRanges configured_skips_;         // data.skip
  SampleRanges skipped_;
  std::optional<BadStep> halted_;
  std::vector<BadStep> tolerated_;  // not reported yet
  int64_t last_explained_ = 0;      // iteration
  int64_t rollbacks_ = 0;           // since the last checkpoint
  bool has_saved_ = false;          // or tried to, since the last rollback
  int64_t spikes_ = 0;
};

}  // namespace bev
