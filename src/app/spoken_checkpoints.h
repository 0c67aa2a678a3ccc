// The checkpoints of a run, with what is said about them.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "app/run_start.h"
#include "app/training_printer.h"
#include "train/run_checkpoints.h"

namespace bev::app {

class SpokenCheckpoints {
 public:
  // `config_text`: of config.toml. `voice`: absent where the rank says nothing but alerts. What is
  // given must outlive this.
  SpokenCheckpoints(const Config& config, const std::string& config_text, int64_t parameters,
                    RunStart& start, const Voice* voice);

  // Where lines of the record go; null: nowhere.
  void print_to(TrainingPrinter* printer) { printer_ = printer; }
  // REQUIRES: the observer is complete otherwise.
  void add_to(TrainObserver& observer);
  // The checkpoint of an iteration, where it was the last one to be saved; else absent.
  std::optional<std::filesystem::path> of(int64_t iteration) const;
  // Waits for what is under way. Why the last one is not there; empty: it is.
  std::string finish() { return checkpoints_.finish() ? "" : failure_; }

 private:
  void ended(const SaveReport& report);

  const Voice* voice_;
  int rank_;
  std::filesystem::path folder_;
  int64_t iterations_;
  std::function<bool()> should_stop_{};
  std::string failure_;
  std::optional<int64_t> newest_;  // iteration that was saved
  TrainingPrinter* printer_ = nullptr;
  RunCheckpoints checkpoints_;
};

}  // namespace bev::app
