// The loop that connects loader, step, validation and log.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "data/loader.h"
#include "data/training_data.h"
#include "train/evaluation.h"
#include "train/run_position.h"
#include "train/step.h"

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

enum class Ending : uint8_t {
  Complete,
  Asked,      // by a signal
  Interval,   // train.exit_interval
  Duration,   // train.exit_minutes
  NonFinite,  // a loss or gradient, and guard.nonfinite says stop
  BadData,    // the next samples, or those of a validation, cannot be read
};

struct TrainSummary {
  Ending ending = Ending::Complete;
  std::string reason;                   // of NonFinite and BadData, in the user's words
  int64_t iterations = 0, applied = 0;  // of the training so far
  int64_t ran = 0, skipped = 0;         // iterations of this run
  double first_loss = 0, last_loss = 0;
  std::optional<double> valid_loss, test_loss;  // the last ones
  double seconds = 0, tokens_per_second = 0;
};

struct TrainObserver {
  std::function<void(const Progress&)> iteration;
  std::function<void(const Validation&)> validation;
  std::function<bool()> should_stop;
  std::function<void(const std::string& chrome_json)> trace{};  // of log.trace_iteration
  // Absent: nothing is saved. All ranks together, between steps: whether a checkpoint is due after
  // an iteration, saving one, and what a save under way needs now and then.
  std::function<bool(int64_t iteration)> is_save_due{};
  std::function<void(const RunPosition&)> save{};
  std::function<void()> between_steps{};
  std::function<void()> finish_saving{};  // what is under way is there afterwards
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
  RunPosition position{};                  // whoever names it has restored the tensors
  std::optional<ScheduleSpec> schedule{};  // absent: as the configuration says
};

class Trainer {
 public:
  Trainer(Assembly& assembly, TrainingData data, const TrainStart& start = {});

  // Runs all iterations that are left and the final validation and test. Whatever ends it early
  // ends it after a whole iteration: the weights are those of the last applied update. They are
  // saved then, unless a number that is not finite ended it.
  TrainSummary run(const TrainObserver& observer);

 private:
  // An iteration whose step is issued.
  struct Issued {
    int64_t iteration;
    int64_t first, samples;  // of the training data
  };
  // What a run keeps while it runs.
  struct Course {
    const TrainObserver& observer;
    TrainSummary& summary;
    Pace pace;
    double start, last;  // of the first iteration, of the last result
    double tokens = 0;
    std::deque<Issued> issued{};
    int64_t position = 0;   // the sample behind the last that was trained on
    int64_t saved = 0;      // the last iteration that was
    int64_t validated = 0;  // likewise
  };
  // Collects results until at most `left` are outstanding. False, and the ending set, when one of
  // them ends the run; those behind it are then collected too, none of them was applied.
  bool collect(Course& course, size_t left);
  bool report(Course& course, const Issued& issued, const StepResult& result);
  void issue(const TrainObserver& observer, const Issued& issued,
             std::span<const HostBatch> batches);
  bool is_eval_due(int64_t iteration) const;
  // What a save or a validation took counts for no iteration.
  void leave_out(Course& course);
  void save(Course& course);
  // The largest of what the ranks bring.
  int agree(int here);
  // False, and the ending set, when the data cannot be read.
  bool validate(const TrainObserver& observer, int64_t iteration, bool at_end,
                TrainSummary& summary);
  std::optional<double> evaluate(const HeldSamples& held, std::string_view split, int64_t iteration,
                                 bool at_end, const TrainObserver& observer);
  std::string explain_nonfinite(int64_t iteration, int64_t first, int64_t count,
                                const StepResult& result);

  Assembly& assembly_;
  TrainingData data_;
  BatchShape batch_;
  int64_t iterations_;
  RunPosition start_;
  Loader loader_;
  Evaluation evaluation_;
  Stepper stepper_;
  std::optional<Trace> trace_;  // while it is written
  // Steps that may be issued before the result of an earlier one is known.
  size_t ahead_;
};

}  // namespace bev
