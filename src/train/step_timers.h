// Where the time of iterations goes, as a table below a log line.
#pragma once

#include <map>
#include <string>

#include "comm/communicator.h"
#include "config/config.h"
#include "device/timing.h"
#include "train/step_runner.h"

namespace bev {

// Sums of seconds by name, in the words of Megatron-LM where it has one.
class StepTimers {
 public:
  // log.timing and log.timed_ranks.
  explicit StepTimers(const LogConfig& config)
      : level_(config.timing), whose_(config.timed_ranks) {}

  bool is_on() const { return level_ > 0; }
  bool wants_ops() const { return level_ > 1; }

  void add(std::string_view name, double seconds);
  void add(const StepResult& result);
  // Each kind of op of a step.
  void add(const std::vector<OpSpan>& spans);
  void count_iteration() { ++iterations_; }

  // The mean over the iterations since the last call, in milliseconds; empty where there was none.
  // All ranks together, with the same names.
  std::string take_table(Communicator& world);

 private:
  int64_t level_;
  TimedRanks whose_;
  std::map<std::string, double, std::less<>> seconds_;
  int64_t iterations_ = 0;
};

}  // namespace bev
