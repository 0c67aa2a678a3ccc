// TrainLoop: reads batches, runs steps, validates, saves and reports.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "data/data_loader.h"
#include "data/training_data.h"
#include "train/evaluation.h"
#include "train/guard_policy.h"
#include "train/run_checkpoints.h"
#include "train/step_runner.h"
#include "train/step_timers.h"
#include "train/train_log.h"
#include "train/training_state.h"

namespace bev {

enum class ExitReason : uint8_t {
  Complete,
  Evaluated,  // train.skip_train
  Signal,
  Request,     // the file `stop` in the control folder
  Interval,    // train.exit_interval
  After,       // train.exit_after
  Samples,     // train.exit_samples
  Duration,    // train.exit_minutes
  NonFinite,   // a loss or gradient, with guard.nonfinite stop
  Spike,       // of a loss or gradient, with guard.loss_spike or guard.norm_spike stop
  Corruption,  // replicas differ
  BadData,     // samples for training or validation cannot be read
};

struct TrainSummary {
  ExitReason ending = ExitReason::Complete;
  int signal = 0;                       // that ended the run
  std::string reason;                   // error message, if the ending is an error
  int64_t iterations = 0, applied = 0;  // of the training so far
  int64_t planned = 0;                  // iterations of the whole training
  int64_t ran = 0, skipped = 0;         // iterations of this run
  int64_t spikes = 0, rollbacks = 0;
  double first_loss = 0, last_loss = 0;
  std::optional<double> valid_loss, test_loss;  // of the last validation and test
  double seconds = 0, tokens_per_second = 0;
};

// Mean time of an iteration. The first iteration allocates memory and is not included.
class Pace {
 public:
  explicit Pace(double start) : start_(start), steady_(start) {}

  void iteration_done(double now) {
    ++done_;
    if (done_ == 1) steady_ = now;
    mean_ = done_ > 1 ? (now - steady_ - paused_) / static_cast<double>(done_ - 1) : now - start_;
  }
  // Excludes a validation or save.
  void pause(double seconds) { paused_ += seconds; }
  double seconds_for(int64_t iterations) const { return mean_ * static_cast<double>(iterations); }

 private:
  int64_t done_ = 0;  // iterations of this run
  double start_, steady_, mean_ = 0, paused_ = 0;
};

// The starting point of a run.
struct TrainStart {
  RunPosition position{};                // the caller has restored the tensors of this position
  std::optional<LrSchedule> schedule{};  // absent: from the configuration
};

class TrainLoop {
 public:
  // `checkpoints`: null: nothing is saved, and the run cannot roll back. `poll_requests` returns
  // the requests to this rank; empty: none. References and pointers must outlive this.
  TrainLoop(TrainingState& state, TrainingData data, const TrainStart& start, TrainLog& log,
            Checkpointing* checkpoints = nullptr, std::function<RunRequests()> poll_requests = {});
  ~TrainLoop() { state_.executor.trace_into(nullptr); }
  TrainLoop(const TrainLoop&) = delete;
  TrainLoop& operator=(const TrainLoop&) = delete;

  // Runs the remaining iterations, then the final validation and test. A run ends early only after
  // a complete iteration. It saves its state, after a bad step the state before that step, unless
  // replicas differ. REQUIRES: called once.
  TrainSummary run();

 private:
  // Trains and saves; sets the ending.
  void train();
  // One iteration with validation, save and requests. False: the run ends, and the ending is set.
  bool advance();
  // The next batch. Absent: some rank cannot read it, and the ending is set.
  std::optional<std::span<const HostBatch>> read();
  void issue(const SubmittedStep& step, std::span<const HostBatch> batches);
  // Collects results until at most `left` steps are in flight. False: a step halted the updates;
  // then the steps after it are dropped.
  bool collect(size_t left);
  void report(const SubmittedStep& step, const StepResult& result);
  // Rolls back (true) or sets the ending (false).
  bool recover_from_step();
  bool recover_from_corruption(const std::string& difference);
  bool recover(const GuardPolicy::Recovery& recovery, ExitReason ending);
  // Continues from this position, whose tensors are restored.
  void start_at(const RunPosition& position);

  bool is_eval_due(int64_t iteration) const;
  ExitReason ending_after(int64_t iteration, const DataLoader::Position& place) const;
  // All ranks together: the requests, and whether the run ends here.
  struct Agreement {
    ExitReason ending = ExitReason::Complete;
    RunRequests requests{};
  };
  Agreement agree(ExitReason here);
  RunRequests poll_requests() const { return poll_requests_ ? poll_requests_() : RunRequests{}; }
  void carry_out(const RunRequests& requests, bool is_saved, bool is_validated);
  // Excludes the time since the last result from the times of iterations.
  void pause();
  void save();
  // False: the data cannot be read, and the ending is set.
  bool validate(bool at_end);
  // The mean loss. Absent: there is no data, or a signal or request ended the evaluation.
  std::optional<double> evaluate(const HeldSamples& held, std::string_view split, int64_t iteration,
                                 bool at_end);
  int64_t all_reduce_max(int64_t here) { return state_.groups.world().all_reduce_max_host(here); }

  TrainingState& state_;
  TrainingData data_;
  TrainLog& log_;
  Checkpointing* checkpoints_;
  std::function<RunRequests()> poll_requests_;
  BatchShape batch_;
  int64_t iterations_;  // of the whole training
  RunPosition start_;
  std::optional<DataLoader> loader_;  // replaced after a rollback
  Evaluation evaluation_;
  StepRunner stepper_;
  GuardPolicy guards_;
  StepTimers timers_;
  std::optional<Trace> trace_;  // in progress
  size_t ahead_;  // steps that may be issued before the result of an earlier step is known

  TrainSummary summary_;
  Pace pace_{0};
  double begin_time_ = 0, last_time_ = 0;  // of the first iteration, of the last result
  double tokens_ = 0;
  int64_t next_ = 0;  // iteration to issue
  std::deque<SubmittedStep> in_flight_;
  DataLoader::Position place_{};       // after the last accepted step
  std::optional<double> loss_;         // of the last accepted step
  int64_t saved_ = 0, validated_ = 0;  // last iteration that was saved, validated
};

}  // namespace bev
