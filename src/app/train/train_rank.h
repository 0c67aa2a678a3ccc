// The training of one rank, with what it writes and says.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/cli/stop_signal.h"
#include "app/train/logged_checkpoints.h"
#include "app/train/run_recorder.h"
#include "plan/dry_run.h"
#include "train/run_directory.h"

namespace bev::app {

// What a run does besides training.
struct RunOutput {
  const Config& config;
  const Plan& planned;  // of the first rank
  const ResumePoints& resume_points;
  std::string config_text;
  const RunDirectory& directory;
  RunRecord* record;  // the first rank's; absent elsewhere, and where nothing is trained
  int speaker;        // the rank that says what all ranks know
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

// All ranks together. `voice`: absent where the rank says nothing.
RankResult train_rank(const RunOutput& out, const TrainingData& data, Device& device,
                      Communicator& world, const Voice* voice);

}  // namespace bev::app
