// What `bevatron train` shows while it runs. The record of the run (log lines, validations) goes to
// stdout; on a terminal one live line stands below it.
#pragma once

#include <string>
#include <vector>

#include "app/cli/console.h"
#include "app/train/run_start.h"
#include "report/log_line.h"
#include "report/slowest_rank.h"
#include "train/train_loop.h"

namespace bev::app {

class TrainingPrinter {
 public:
  struct Options {
    int64_t interval = 100;
    double flops_per_token = 0, peak_flops = 0;
    // The latest times of all ranks; absent where there is one, or where others print.
    std::function<std::vector<RankTimes>()> times{};
  };
  TrainingPrinter(const Console& console, const Options& options);

  void iteration(const Progress& progress);
  void validation(const Validation& validation);
  // Another line of the record.
  void record(const std::string& line) { print(line); }
  // Before somebody else writes to the terminal.
  void clear_live();
  // Removes the live line; the last iterations that no log line covers get one.
  void finish();

  // "3 (+12.3 %)": the slowest rank as the last log line named it; empty where none was.
  const std::string& slowest() const { return slowest_text_; }
  // The training goes on behind this iteration again.
  void rolled_back(int64_t iteration);

  // The losses so far, drawn; empty when there are too few to show anything.
  std::string curve() const;

 private:
  void print_interval(const Progress& progress);
  void print(const std::string& line);

  const Console& console_;
  Options options_;
  bool live_;
  bool live_shown_ = false;
  double shown_at_ = 0;
  LogInterval interval_;
  SlowestRank slowest_;
  std::string slowest_text_;
  Progress last_{};
  int64_t first_ = 0;  // iteration
  std::vector<double> losses_;
};

// What `bevatron train` says around the training itself.

// What will be trained, on what, from what and where to.
void print_start(const Console& console, const Config& config, const Preflight& preflight);
// What is known after the first iteration: how the device computes, and in how much memory.
void print_after_first(const Console& console, const Config& config, const Plan& plan,
                       Device& device);

// "complete", "stopped by SIGTERM".
std::string ending_words(const TrainSummary& summary);
// The last lines of the record, for scripts: Megatron-LM's own where it has one, and one that says
// all: "run ended | reason: ... | iteration: 120/1000 | checkpoint: PATH | complete: no |".
std::string exit_lines(const TrainSummary& summary, const std::string& checkpoint);
void print_end(const Console& console, const TrainSummary& summary, const std::string& curve);
void print_next_steps(const Console& console, const Config& config);

// Throws when the run did not end well. `saved`: what is there of it. REQUIRES: it is there by now.
void require_good_end(const TrainSummary& summary, const std::string& saved);

}  // namespace bev::app
