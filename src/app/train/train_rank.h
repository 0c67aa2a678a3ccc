// The training of one rank, with its log and its files.
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
#include "train/run_directory.h"

namespace bev::app {

// The outputs of a run besides training.
struct RunOutput {
  const Config& config;
  const Plan& planned;  // of rank 0
  const ResumePoints& resume_points;
  std::string config_text;
  const RunDirectory& directory;
  RunRecorder* record;  // used by rank 0; null: with train.skip_train
  int speaker;          // the rank that prints messages that are the same on all ranks
  const StopSignal& stop;
  std::function<void(int rank, const RankTimes& times)> report_times;
  std::function<std::vector<RankTimes>()> all_times;  // called by rank 0

  bool keeps() const { return !config.train.output.empty(); }
};

struct RankResult {
  TrainSummary summary;
  std::string unsaved;  // why the last save failed; empty: it succeeded, or there was none
  std::string saved = "nothing was saved, since train.output is empty";
  bool wrote_model = false;
};

// All ranks together. `console`: null: the rank prints only alerts.
RankResult train_rank(const RunOutput& out, const TrainingData& data, Device& device,
                      Communicator& world, const Console* console);

}  // namespace bev::app
