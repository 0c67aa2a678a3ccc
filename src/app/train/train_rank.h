// Training of one rank, with its output files and its log.
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

// Checkpoints of a run; logs every save and rollback.

class LoggedCheckpoints {
 public:
  // `config_text`: content of config.toml. `console`: null on ranks that print only alerts. The
  // referenced arguments must outlive this.
  LoggedCheckpoints(const Config& config, const std::string& config_text, int64_t parameters,
                    RunInit& start, const Console* console);

  // Destinations of log lines and of status updates; null: none.
  void print_to(TrainingPrinter* printer, RunRecorder* record) {
    printer_ = printer;
    record_ = record;
  }
  // Adds the callbacks for saving and rolling back. REQUIRES: the observer's other callbacks are
  // set.
  void add_to(TrainObserver& observer);
  // The checkpoint of `iteration` if it is the last one saved; else absent.
  std::optional<std::filesystem::path> of(int64_t iteration) const;
  // The last checkpoint saved, or the one that the run started from.
  std::optional<std::filesystem::path> newest() const;
  // Waits for a save in progress. Returns why the last save failed; empty: it succeeded.
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
  std::optional<int64_t> newest_;  // last iteration that was saved
  TrainingPrinter* printer_ = nullptr;
  RunRecorder* record_ = nullptr;
  RunCheckpoints checkpoints_;
};

// Inputs and outputs of train_rank() besides model and data: configuration, run folder, log, times.
struct RunOutput {
  const Config& config;
  const Plan& planned;  // of the first rank
  const ResumePoints& resume_points;
  std::string config_text;
  const RunDirectory& directory;
  RunRecorder* record;  // the first rank's; null on other ranks and if nothing is trained
  int speaker;          // the rank that logs what all ranks know
  const StopSignal& stop;
  std::function<void(int rank, const RankTimes& times)> report_times;
  std::function<std::vector<RankTimes>()> all_times;  // called by the first rank

  bool keeps() const { return !config.train.output.empty(); }
};

struct RankResult {
  TrainSummary summary;
  std::string unsaved;  // why the last checkpoint was not saved; empty: it was, or none was due
  std::string saved = "nothing was saved, since train.output is empty";
  bool wrote_model = false;
};

// Collective over all ranks. `console`: null on ranks that do not log.
RankResult train_rank(const RunOutput& out, const TrainingData& data, Device& device,
                      Communicator& world, const Console* console);

}  // namespace bev::app
