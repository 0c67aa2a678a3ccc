// What a rank trains: fresh weights, or those of a checkpoint that some layout wrote.
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
  // All ranks together: the newest of the points whose data are good on every rank, or fresh
  // weights where there are no points. `console`: absent where the rank says nothing. Data error
  // where no point is good.
  RunInit(const Config& config, const ResumePoints& points, Device& device, ProcessGroups& groups,
          const ArenaSizes& sizes, const Console* console);

  TrainingState& state() { return *state_; }
  const TrainStart& start() const { return continuation_.start; }
  // The checkpoint; absent where the weights were fresh.
  std::optional<std::filesystem::path> began_with() const {
    return began_with_ ? std::optional(began_with_->path) : std::nullopt;
  }
  // The schedule that the run follows.
  LrSchedule schedule() const;
  // Restores the newest good checkpoint of the folder with at most `most` iterations, or the
  // initial state of the run if there is none. All ranks together, between steps.
  RunPosition roll_back_to(const CheckpointFolder& folder, int64_t most, const Console* console);
  // Of the checkpoints of this run: those before it, and itself.
  std::vector<HistoryEntry> history() const;

 private:
  // False: it is damaged for some rank.
  bool restore_from(const CheckpointPlace& place, const Config& config, Device& device,
                    ProcessGroups& groups, const ArenaSizes& sizes, const Console* console);

  // Fresh weights: the encoders of a bi-encoder may begin with those of a BERT.
  void begin_with_bert(const Console* console);

  // What `read` does on every rank; false where it finds damage on one of them, which is told.
  static bool all_can(Communicator& world, const Console* console, int64_t iteration,
                      FunctionRef<void()> read);

  ResumePlan continuation_;
  std::optional<CheckpointPlace> began_with_;  // absent: fresh weights
  std::optional<Manifest> from_;
  std::unique_ptr<TrainingState> state_;
};

// Everything about a training that can be known before its first step.

// Looks at memory, data and output. One look finds all problems; require() throws them.
class Preflight {
 public:
  // `sharing`: see require_fit(). `writes`: whether this process will write the output. REQUIRES: a
  // checked configuration that trains.
  Preflight(const Config& config, int sharing, bool writes);

  // Throws what was found: the one problem itself, or a list of all with the first one's kind.
  void require() const;

  // What the run does: as the user has it, with the padding of what it continues from.
  const Config& config() const { return config_; }
  const LayoutPlan& layout() const { return *layout_; }
  // Of the first rank.
  const Plan& plan() const { return layout_->shown; }
  const TrainingData& data() const { return data_; }
  // What checkpoint.load means.
  const ResumePoints& resume_points() const { return resume_points_; }

 private:
  void attempt(FunctionRef<void()> look);

  Config config_;
  ResumePoints resume_points_;
  std::optional<LayoutPlan> layout_;
  TrainingData data_;
  std::vector<Error> problems_;
};

// A training that its launcher has started again.

// What a training continues from when its launcher starts it once more: with its own checkpoints,
// whatever checkpoint.load and checkpoint.finetune of the command say. Where there are none yet, as
// the command says; one without checkpoint.load then begins anew in the same folders. Changes
// nothing at the first start, nor where no checkpoints are wanted. `environment`: absent where this
// process is alone. Ranks that see the same folder come to the same.
void continue_after_restart(Config& config, Origins& origins,
                            const std::optional<RankEnvironment>& environment);

}  // namespace bev::app
