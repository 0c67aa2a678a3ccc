// TrainingState: everything one rank needs to train a configuration, on a device. On the null
// device it is the plan. RunPosition: progress between two steps.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "checkpoint/manifest.h"
#include "ops/update_rule.h"
#include "optim/grad_reducer.h"
#include "optim/optimizer.h"
#include "pipeline/executor.h"
#include "pipeline/rank_model.h"

namespace bev {

class TrainingState : public RankModel {
 public:
  TrainingState(const Config& config, Device& device, ProcessGroups& groups,
                const ArenaSizes& sizes, const ModelOptions& options = {});
  // On one rank.
  TrainingState(const Config& config, Device& device, const ArenaSizes& sizes,
                const ModelOptions& options = {});

  // Fresh weights from the seed.
  void initialize();
  // The same after some training: the optimizer forgets it, too.
  void reinitialize();

 private:
  TrainingState(const Config& config, Device& device, std::unique_ptr<SingleRankWorld> world,
                const ArenaSizes& sizes, const ModelOptions& options);

 public:
  GradBuffer grads;
  GradReducer reducer;
  Optimizer optimizer;
  Executor executor;
};

// Where a training stands between two steps: with the tensors, all that decides how it goes on.

struct RunPosition {
  int64_t iteration = 0;         // done so far
  int64_t consumed_samples = 0;  // what the log and the ramp of the batch count
  int64_t data_position = 0;     // behind the last sample that was taken
  SampleRanges skipped{};        // what guards left out of the data
  // Absent: as at the start of a training.
  std::optional<std::array<double, kUpdateStates>> update{};
  std::optional<double> loss{}, valid_loss{};  // of this iteration
};

// The part of a manifest that says it, and back. Data error naming `source` where the manifest
// lacks something.
void write_position(const RunPosition& position, Manifest& manifest);
RunPosition read_position(const Manifest& manifest, const std::string& source);

}  // namespace bev
