// The schedule of a step, as a configuration asks for it.
#pragma once

#include "config/config.h"
#include "parallel/parallel_layout.h"
#include "pipeline/schedule.h"

namespace bev {

ScheduleKind schedule_of(const Config& config);

PipelineShape pipeline_shape(const Config& config, int64_t micros);

// The programs of all pipeline ranks. REQUIRES: a checked configuration.
std::vector<Program> step_programs(const Config& config, int64_t micros);

}  // namespace bev
