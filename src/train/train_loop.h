// The loop that connects loader, step, validation and log.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "data/data_loader.h"
#include "data/training_data.h"
#include "train/evaluation.h"
#include "train/guards.h"
#include "train/step_runner.h"
#include "train/step_timers.h"
#include "train/training_state.h"

namespace bev {

// What the user sees of one iteration.
struct Progress {
  int64_t iteration = 0, iterations = 0;  // counted from 1
  int64_t samples = 0;                    // consumed so far
  int64_t batch = 0;                      // samples of this iteration
  StepResult result{};
  double seconds = 0;  // of this iteration
  double tokens_per_second = 0;
  double seconds_left = 0;  // at the mean pace so far, without the first iteration
};

struct Validation {
  int64_t iteration = 0;
  std::string_view split;  // "validation" or "test"
  bool at_end = false;
  int64_t samples = 0;
  double loss = 0;  // mean over tokens
  double seconds = 0;
};

enum class ExitReason : uint8_t {
  Complete,
  Evaluated,  // train.skip_train
  Signal,
  Request,     // the file `stop` in the control folder
  Interval,    // train.exit_interval
  After,       // train.exit_after
  Samples,     // train.exit_samples
  Duration,    // train.exit_minutes
  NonFinite,   // a loss or gradient, and guard.nonfinite says stop
  Spike,       // of a loss or gradient, and the policy says stop
  Corruption,  // ranks hold different copies of the same numbers
  BadData,     // the next samples, or those of a validation, cannot be read
};

// What is wanted from outside, between two steps.
struct RunRequests {
  int signal = 0;  // that asks for the end; 0: none
  bool stop = false, save = false, evaluate = false;
  std::optional<double> rate{};  // factor of the scheduled learning rate
};

struct TrainSummary {
  ExitReason ending = ExitReason::Complete;
  int signal = 0;                       // that ended it
  std::string reason;                   // of endings that are errors, in the user's words
  int64_t iterations = 0, applied = 0;  // of the training so far
  int64_t planned = 0;                  // iterations of the whole training
  int64_t ran = 0, skipped = 0;         // iterations of this run
  int64_t spikes = 0, rollbacks = 0;
  double first_loss = 0, last_loss = 0;
  std::optional<double> valid_loss, test_loss;  // the last ones
  double seconds = 0, tokens_per_second = 0;
};

struct TrainObserver {
  std::function<void(const Progress&)> iteration;
  std::function<void(const Validation&)> validation;
  // Of this rank; all ranks agree then on what is done, and `acknowledge` reports that.
  std::function<RunRequests()> poll_requests;
  std::function<void(const RunRequests&, int64_t iteration)> acknowledge{};
  // What the guards found and did; all ranks hear it, the first has the whole text.
  std::function<void(const GuardEvent&)> event{};
  // All ranks together: puts the newest good checkpoint of at most this iteration into the
  // assembly, or what the training began with. Absent: nobody rolls back.
  std::function<RunPosition(int64_t most)> roll_back{};
  // A validation begins.
  std::function<void()> evaluating{};
  // Where the time of the iterations since the last call went, for the log; of the first rank.
  std::function<void(const std::string& table)> timers{};
  std::function<void(const std::string& chrome_json)> trace{};  // of log.trace_iteration
  // Absent: nothing is saved. All ranks together, between steps: whether a checkpoint is due after
  // an iteration, saving one, and what a save under way needs now and then.
  std::function<bool(int64_t iteration)> is_save_due{};
  std::function<void(const RunPosition&)> save{};
  std::function<void()> between_steps{};
  std::function<bool()> finish_saving{};  // what is under way ends; whether it is there
};

// The pace of a run. The first iteration touches all memory for the first time and does not count.
class Pace {
 public:
  explicit Pace(double start) : start_(start), steady_(start) {}

  void iteration_done(double now) {
    ++done_;
    if (done_ == 1) steady_ = now;
    mean_ = done_ > 1 ? (now - steady_ - paused_) / static_cast<double>(done_ - 1) : now - start_;
  }
  // Validations and saves are no part of an iteration.
  void pause(double seconds) { paused_ += seconds; }
  double seconds_for(int64_t iterations) const { return mean_ * static_cast<double>(iterations); }

 private:
  int64_t done_ = 0;  // iterations of this run
  double start_, steady_, mean_ = 0, paused_ = 0;
};

// Where a run begins.
struct TrainStart {
  RunPosition position{};                // whoever names it has restored the tensors
  std::optional<LrSchedule> schedule{};  // absent: as the configuration says
};

class TrainLoop {
 public:
  TrainLoop(TrainingState& assembly, TrainingData data, const TrainStart& start = {});
  ~TrainLoop() { assembly_.executor.trace_into(nullptr); }
  TrainLoop(const TrainLoop&) = delete;
  TrainLoop& operator=(const TrainLoop&) = delete;

  // Runs all iterations that are left and the final validation and test. Whatever ends it early
  // ends it after a whole iteration, and what was trained is saved: after a bad step, as it was
  // before that. Copies that differ are not saved.
  TrainSummary run(const TrainObserver& observer);

 private:
  // What a run keeps while it runs.
  struct State {
    const TrainObserver& observer;
    TrainSummary& summary;
    Pace pace;
    double start, last;  // of the first iteration, of the last result
    int64_t next;        // the iteration that is issued next
    double tokens = 0;
    std::deque<SubmittedStep> issued{};
    DataLoader::Position place{};  // behind the last step that counts
    int64_t saved = 0;             // the last iteration that was
    int64_t validated = 0;         // likewise
    int64_t rollbacks = 0;         // since the last checkpoint
    bool has_saved = false;        // since the last rollback, or tried to
    std::optional<double> loss{};  // of the last step that counts
    int64_t explained = 0;         // the last iteration whose fault was looked for
    // Steps that were found to be bad: one that halted the updates, and others.
    struct BadStep {
      SubmittedStep step;
      StepResult result;
    };
    std::optional<BadStep> halted{};
    std::vector<BadStep> odd{};
  };
  // The next iteration with all that follows it. False: the run ends, and why is set.
  bool advance(State& course);
  // Absent, and the ending set, when they cannot be read.
  std::optional<std::span<const HostBatch>> read(State& course);
  void issue(const TrainObserver& observer, const SubmittedStep& issued,
             std::span<const HostBatch> batches);
  // Collects results until at most `left` are outstanding, and looks into those that are odd. False
  // when one of them halted the updates; those behind it are then collected too and forgotten.
  bool collect(State& course, size_t left);
  void report(State& course, const SubmittedStep& issued, const StepResult& result);
  void diagnose_bad_steps(State& course);
  // After a step that halted, or copies that differ: goes back, or sets the ending.
  bool recover_from_step(State& course);
  bool recover_from_corruption(State& course, const std::string& difference);
  // Continues from a checkpoint of at most this iteration. False, with `why` added to, when it may
  // not.
  bool roll_back_to(State& course, int64_t most, const SubmittedStep* bad, std::string& why);
  void start_at(const RunPosition& position);
  // By the configuration and by guards.
  SampleRanges skipped_samples() const;

  bool is_eval_due(int64_t iteration) const;
  bool is_check_due(int64_t iteration) const;
  // Where copies differ: the words for it.
  std::string replica_difference();
  ExitReason ending_after(int64_t iteration, const DataLoader::Position& place) const;
  // All ranks together: what is wanted and whether the run ends here.
  struct Agreed {
    ExitReason ending = ExitReason::Complete;
    RunRequests requests{};
  };
  Agreed agree(const TrainObserver& observer, ExitReason here);
  void acknowledge(State& course, const RunRequests& requests, bool is_saved, bool is_validated);
  // What a save or a validation took counts for no iteration.
  void leave_out(State& course);
  void save(State& course);
  // The largest of what the ranks bring.
  int64_t all_reduce_max(int64_t here) {
    return assembly_.groups.world().all_reduce_max_host(here);
  }
  // False, and the ending set, when the data cannot be read. One that is given up does not count.
  bool validate(State& course, bool at_end);
  std::optional<double> evaluate(const HeldSamples& held, std::string_view split, int64_t iteration,
                                 bool at_end, const TrainObserver& observer);

  TrainingState& assembly_;
  TrainingData data_;
  BatchShape batch_;
  int64_t iterations_;
  RunPosition start_;
  SampleRanges left_out_;             // by the configuration
  SampleRanges skipped_;              // by guards
  std::optional<DataLoader> loader_;  // made again after a rollback
  Evaluation evaluation_;
  StepRunner stepper_;
  StepDiagnosis diagnosis_;
  std::optional<ReplicaCheck> replicas_;  // where they are compared
  StepTimers timers_;
  std::optional<Trace> trace_;  // while it is written
  // Steps that may be issued before the result of an earlier one is known.
  size_t ahead_;
};

}  // namespace bev
