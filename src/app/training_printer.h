// What `bevatron train` shows while it runs. The record of the run (log lines, validations) goes to
// stdout; on a terminal one live line stands below it.
#pragma once

#include <vector>

#include "app/voice.h"
#include "train/log_line.h"
#include "train/metrics.h"
#include "train/slowest_rank.h"

namespace bev::app {

class TrainingPrinter {
 public:
  struct Options {
    int64_t interval = 100;
    double flops_per_token = 0, peak_flops = 0;
    MetricsLog* metrics = nullptr;  // may be absent
    // The latest times of all ranks; absent where there is one, or where others print.
    std::function<std::vector<RankTimes>()> times{};
  };
  TrainingPrinter(const Voice& voice, const Options& options);

  void iteration(const Progress& progress);
  void validation(const Validation& validation);
  // Another line of the record.
  void record(const std::string& line) { print(line); }
  // Before somebody else writes to the terminal.
  void clear_live();
  // Removes the live line; the last iterations that no log line covers get one.
  void finish();

  // The losses so far, drawn; empty when there are too few to show anything.
  std::string curve() const;

 private:
  void print_interval(const Progress& progress);
  void print(const std::string& line);

  const Voice& voice_;
  Options options_;
  bool live_;
  bool live_shown_ = false;
  double shown_at_ = 0;
  LogInterval interval_;
  SlowestRank slowest_;
  Progress last_{};
  std::vector<double> losses_;
};

}  // namespace bev::app
