// The plan of all ranks of a layout. Ranks that differ in their pipeline stage only by name, and
// those that share a stage, are alike: few of them are dry-run, however many there are.
#pragma once

#include "plan/dry_run.h"

namespace bev {

// The first rank of a pipeline stage; those that share matrices or the batch with it are like it.
struct RankPlan {
  int stage = 0, rank = 0;
  int64_t layers = 0;
  int64_t parameters = 0;
  int slots = 1;
  std::vector<MemoryUse> memory{};
  double flops = 0;   // of a step, as executed
  CommVolume sent{};  // in a step

  size_t memory_bytes() const { return sum_of(memory); }
};

struct LayoutPlan {
  Plan shown;                   // the rank whose details are asked for
  std::vector<RankPlan> ranks;  // by stage
  ScheduleKind schedule{};
  double bubble = 0;             // idle over computing time; forward, and both halves of backward,
                                 // take the same time
  std::vector<StageParts> held;  // by the rank that is shown

  int ranks_of_stage() const { return shown.layout.world() / shown.layout.pipeline; }
  const RankPlan& largest() const;  // by memory
  const RankPlan& smallest() const;
  int64_t most_parameters() const;
  // What any rank sends most, axis by axis.
  CommVolume most_sent() const;
  // Of all ranks together.
  size_t memory_bytes() const;
  double flops() const;
};

// REQUIRES: a checked configuration, a rank of its layout.
LayoutPlan plan_layout(const Config& config, int rank = 0);

}  // namespace bev
