#include "pipeline/step_schedule.h"

#include "config/resolve.h"

namespace bev {

ScheduleKind schedule_of(const Config& config) {
  const ScheduleKind asked = config.parallel.schedule;
  const bool interleaves = asked == ScheduleKind::OneFOneB && pipeline_chunks(config) > 1;
  return interleaves ? ScheduleKind::Interleaved : asked;
}

PipelineShape pipeline_shape(const Config& config, int64_t micros) {
  const ParallelLayout layout = layout_of(config);
  return {.ranks = layout.pipeline,
          .chunks = layout.chunks,
          .micros = micros,
          .gradient_replaces_input = config.recompute.distribute && layout.tensor > 1};
}

std::vector<Program> step_programs(const Config& config, int64_t micros) {
  return build_schedule(schedule_of(config), pipeline_shape(config, micros));
}

}  // namespace bev
