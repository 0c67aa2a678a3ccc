// The checkpoints of a run, with what is said about them.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "app/train/run_recorder.h"
#include "app/train/run_start.h"
#include "app/train/training_printer.h"
#include "train/run_checkpoints.h"

namespace bev::app {

class SpokenCheckpoints {
 public:
  // `config_text`: of config.toml. `voice`: absent where the rank says nothing but alerts. What is
  // given must outlive this.
  SpokenCheckpoints(const Config& config, const std::string& config_text, int64_t parameters,
                    RunStart& start, const Voice* voice);

  // Where lines of the record, and news about the state of the run, go; null: nowhere.
  void print_to(TrainingPrinter* printer, RunRecord* record) {
    printer_ = printer;
    record_ = record;
  }
  // REQUIRES: the observer is complete otherwise.
  void add_to(TrainObserver& observer);
  // The checkpoint of an iteration, where it was the last one to be saved; else absent.
  std::optional<std::filesystem::path> of(int64_t iteration) const;
  // The last one to be saved, or the one that the run began with.
  std::optional<std::filesystem::path> newest() const;
  // Waits for what is under way. Why the last one is not there; empty: it is.
  std::string finish() { return checkpoints_.finish() ? "" : failure_; }

 private:
  void ended(const SaveReport& report);
  RunPosition roll_back(int64_t most);

  RunStart& start_;
  const Voice* voice_;
  int rank_;
  std::filesystem::path folder_;
  int64_t iterations_;
  std::function<Wishes()> wishes_{};
  std::string failure_;
  std::optional<int64_t> newest_;  // iteration that was saved
  TrainingPrinter* printer_ = nullptr;
  RunRecord* record_ = nullptr;
  RunCheckpoints checkpoints_;
};

}  // namespace bev::app
