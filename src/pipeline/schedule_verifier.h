// Verifies a schedule before a job starts, so that a wrong one is an error instead of a hang.
#pragma once

#include "pipeline/schedule_simulation.h"

namespace bev {

struct ScheduleReport {
  std::vector<int> slots;  // activation memories per rank, of all its chunks
  double bubble = 0;       // idle over useful time, for the given costs
};

// Throws an Internal error that names rank, instruction and reason unless
//  - every stage computes every micro-batch forward and (with `backward`) backward exactly once,
//    with its loads, receives and sends, each instruction after those that it depends on;
//  - no slot is reused while its micro-batch is in flight;
//  - no rank deadlocks, and every receive gets the message it expects (schedule_simulation.h).
ScheduleReport verify_schedule(std::span<const Program> programs, const PipelineShape& shape,
                               std::span<const StageCosts> stages = {}, bool backward = true);

}  // namespace bev
