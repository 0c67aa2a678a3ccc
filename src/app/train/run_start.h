// Start of a run: initial or restored weights, checks before the first step, restarts.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "app/cli/console.h"
#include "base/error.h"
#include "base/function_ref.h"
#include "config/config.h"
#include "config/parse/field.h"
#include "data/training_data.h"
#include "launch/rank_environment.h"
#include "plan/layout_plan.h"
#include "train/resume.h"

namespace bev::app {

class RunInit {
 public:
  // Restores the newest checkpoint of `points` that every rank can read; initialises the weights if
  // there are no points. Data error if every point is damaged. Collective over all ranks.
  // `console`: null on ranks that do not log.
  RunInit(const Config& config, const ResumePoints& points, Device& device, ProcessGroups& groups,
          const ArenaSizes& sizes, const Console* console);

  TrainingState& assembly() { return *assembly_; }
  const TrainStart& start() const { return continuation_.start; }
  // The checkpoint that the run started from; absent if the weights were initialised.
  std::optional<std::filesystem::path> began_with() const {
    return began_with_ ? std::optional(began_with_->path) : std::nullopt;
  }
  // The learning-rate schedule of the run.
  LrSchedule schedule() const;
  // Restores the newest readable checkpoint in `folder` with at most `most` iterations into the
  // training state; if there is none, the state that the run started from. Collective, between
  // steps.
  RunPosition roll_back_to(const CheckpointFolder& folder, int64_t most, const Console* console);
  // History entries for this run's checkpoints: those of the checkpoint it started from, then its
  // own.
  std::vector<HistoryEntry> history() const;

 private:
  // Returns false if a rank finds the checkpoint damaged.
  bool restore_from(const CheckpointPlace& place, const Config& config, Device& device,
                    ProcessGroups& groups, const ArenaSizes& sizes, const Console* console);

  // Runs `read` on every rank. Returns false on all ranks if it throws a Data error on one of them;
  // that rank prints an alert. Collective.
  static bool all_can(Communicator& world, const Console* console, int64_t iteration,
                      FunctionRef<void()> read);

  ResumePlan continuation_;
  std::optional<CheckpointPlace> began_with_;  // absent: fresh weights
  std::optional<Manifest> from_;
  std::unique_ptr<TrainingState> assembly_;
};

// Checks before the first step.

// Checks the resume point, memory, data and output. The constructor collects all problems;
// require() throws them.
class Preflight {
 public:
  // `sharing`: see require_fit(). `writes`: whether this process will write the output. REQUIRES: a
  // checked configuration that trains.
  Preflight(const Config& config, int sharing, bool writes);

  // Throws the problem, or a list of all problems with the kind of the first one.
  void require() const;

  // The user's configuration, with the vocabulary padding of the checkpoint that the run resumes
  // from.
  const Config& config() const { return config_; }
  const LayoutPlan& layout() const { return *layout_; }
  // The plan of the first rank.
  const Plan& plan() const { return layout_->shown; }
  const TrainingData& data() const { return data_; }
  // The checkpoints that checkpoint.load selects.
  const ResumePoints& resume_points() const { return resume_points_; }

 private:
  void attempt(FunctionRef<void()> look);

  Config config_;
  ResumePoints resume_points_;
  std::optional<LayoutPlan> layout_;
  TrainingData data_;
  std::vector<Error> problems_;
};

// Resuming a run that its launcher has restarted.

// Makes a restarted run continue from its own checkpoints, regardless of checkpoint.load,
// checkpoint.finetune and checkpoint.step. If the run has no checkpoint yet, a command that loads
// another run's checkpoint applies unchanged, and one without checkpoint.load starts from scratch
// in the same folders. No-op at the first start and if the run saves no checkpoints. `environment`:
// absent for a single process. Ranks that see the same folder get the same result.
void continue_after_restart(Config& config, Origins& origins,
                            const std::optional<RankEnvironment>& environment);

}  // namespace bev::app
