#include "pipeline/schedules/compute_order.h"

namespace bev {

ComputeOrder gpipe_order(const PipelineShape& shape, int /*rank*/) {
  ComputeOrder order;
  for (const Act act : {Act::Forward, Act::Backward}) {
    for (uint32_t micro = 0; micro < shape.micros; ++micro) order.push_back({act, 0, micro});
  }
  return order;
}

}  // namespace bev
