// What a rank trains: fresh weights, or those of a checkpoint that some layout wrote.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "app/voice.h"
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
  // The schedule that the run follows.
  ScheduleSpec schedule() const;
  // Of the checkpoints of this run: those before it, and itself.
  std::vector<HistoryEntry> history() const;

 private:
  // False: it is damaged for some rank.
  bool restore_from(const CheckpointPlace& place, const Config& config, Device& device,
                    Groups& groups, const ArenaSizes& sizes, const Voice* voice);

  Continuation continuation_;
  std::optional<Manifest> from_;
  std::unique_ptr<Assembly> assembly_;
};

}  // namespace bev::app
