// TrainLog: the interface through which a training loop reports what it does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "config/sample_ranges.h"
#include "train/step_runner.h"

namespace bev {

struct Progress {
  int64_t iteration = 0, iterations = 0;  // counted from 1; of the whole training
  int64_t samples = 0;                    // consumed up to this iteration
  int64_t batch = 0;                      // samples of this iteration
  StepResult result{};
  double seconds = 0;  // of this iteration
  double tokens_per_second = 0;
  double seconds_left = 0;  // at the mean pace of this run, without its first iteration
};

struct Validation {
  int64_t iteration = 0;
  std::string_view split;  // "validation" or "test"
  bool at_end = false;
  int64_t samples = 0;
  double loss = 0;  // weighted sum of the means
  LossMeans losses{};
  double seconds = 0;
};

enum class GuardAction : uint8_t { Logged, Skipped, RolledBack, Stopped };

// A finding of the guards and the action they took.
struct GuardEvent {
  int64_t iteration = 0;
  SampleRange samples{};  // of the iteration, if they matter
  GuardAction action{};
  bool is_spike = false;
  bool is_explained = false;  // the step was recomputed to find the cause
  std::string text{};         // for the user; the first line is a summary
};

// Requests to a running training: signals and control files.
struct RunRequests {
  int signal = 0;  // that asks for the end; 0: none
  bool stop = false, save = false, evaluate = false;
  std::optional<double> rate{};  // factor of the scheduled learning rate
};

// Every rank has a log and makes the same calls in the same order, except trace().
class TrainLog {
 public:
  virtual ~TrainLog() = default;

  virtual void iteration(const Progress&) {}
  virtual void evaluation_began() {}
  virtual void validation(const Validation&) {}
  // Rank 0 has the whole text.
  virtual void event(const GuardEvent&) {}
  // All ranks agreed on the requests after this iteration, and are about to carry them out.
  virtual void acknowledged(const RunRequests&, int64_t /*iteration*/) {}
  // The mean step times since the last call.
  virtual void timers(const std::string& /*table*/) {}
  // The ops of log.trace_iteration, on rank 0 if log.trace is set.
  virtual void trace(const std::string& /*chrome_json*/) {}
};

}  // namespace bev
