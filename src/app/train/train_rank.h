// The training of one rank, with what it writes and says.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/signals.h"
#include "app/train/run_recorder.h"
#include "app/train/run_start.h"
#include "app/train/training_printer.h"
#include "plan/dry_run.h"
#include "train/run_checkpoints.h"
#include "train/run_directory.h"

namespace bev::app {

// The checkpoints of a run, with what is said about them.

class LoggedCheckpoints {
 public:
  // `config_text`: of config.toml. `console`: absent where the rank says nothing but alerts. What
  // is given must outlive this.
  LoggedCheckpoints(const Config& config, const std::string& config_text, int64_t parameters,
                    RunInit& start, const Console* console);

  // Where lines of the record, and news about the state of the run, go; null: nowhere.
  void print_to(TrainingPrinter* printer, RunRecorder* record) {
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

  RunInit& start_;
  const Console* console_;
  int rank_;
  std::filesystem::path folder_;
  int64_t iterations_;
  std::function<RunRequests()> requests_{};
  std::string failure_;
  std::optional<int64_t> newest_;  // iteration that was saved
  TrainingPrinter* printer_ = nullptr;
  RunRecorder* record_ = nullptr;
  RunCheckpoints checkpoints_;
};

// What a run does besides training.
struct RunOutput {
  const Config& config;
  const Plan& planned;  // of the first rank
  const ResumePoints& resume_points;
  std::string config_text;
  const RunDirectory& directory;
  RunRecorder* record;  // the first rank's; absent elsewhere, and where nothing is trained
  int speaker;          // the rank that says what all ranks know
  const StopSignal& stop;
  std::function<void(int rank, const RankTimes& times)> report_times;
  std::function<std::vector<RankTimes>()> all_times;  // asked by the first rank

  bool keeps() const { return !config.train.output.empty(); }
};

struct RankResult {
  TrainSummary summary;
  std::string unsaved;  // why the last checkpoint is not there; empty: it is, or none was wanted
  std::string saved = "nothing was saved, since train.output is empty";
  bool wrote_model = false;
};

// All ranks together. `console`: absent where the rank says nothing.
RankResult train_rank(const RunOutput& out, const TrainingData& data, Device& device,
                      Communicator& world, const Console* console);

}  // namespace bev::app
