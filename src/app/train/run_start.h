// What a rank trains: fresh weights, or those of a checkpoint that some layout wrote.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "app/cli/console.h"
#include "base/function_ref.h"
#include "train/resume.h"

namespace bev::app {

class RunStart {
 public:
  // All ranks together: the newest of the points whose data are good on every rank, or fresh
  // weights where there are no points. `voice`: absent where the rank says nothing. Data error
  // where no point is good.
  RunStart(const Config& config, const ResumePoints& points, Device& device, Groups& groups,
           const ArenaSizes& sizes, const Voice* voice);

  Assembly& assembly() { return *assembly_; }
  const TrainStart& start() const { return continuation_.start; }
  // The checkpoint; absent where the weights were fresh.
  std::optional<std::filesystem::path> began_with() const {
    return began_with_ ? std::optional(began_with_->path) : std::nullopt;
  }
  // The schedule that the run follows.
  ScheduleSpec schedule() const;
  // All ranks together, while the run goes on: puts the newest good checkpoint of the folder with
  // at most `most` iterations into the assembly, or, where there is none, what the run began with.
  RunPosition go_back(const CheckpointFolder& folder, int64_t most, const Voice* voice);
  // Of the checkpoints of this run: those before it, and itself.
  std::vector<HistoryEntry> history() const;

 private:
  // False: it is damaged for some rank.
  bool restore_from(const CheckpointPlace& place, const Config& config, Device& device,
                    Groups& groups, const ArenaSizes& sizes, const Voice* voice);

  // What `read` does on every rank; false where it finds damage on one of them, which is told.
  static bool all_can(Communicator& world, const Voice* voice, int64_t iteration,
                      FunctionRef<void()> read);

  Continuation continuation_;
  std::optional<CheckpointPlace> began_with_;  // absent: fresh weights
  std::optional<Manifest> from_;
  std::unique_ptr<Assembly> assembly_;
};

}  // namespace bev::app
