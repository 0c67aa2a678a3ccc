#include <algorithm>

#include "pipeline/schedules/compute_order.h"

namespace bev {

ComputeOrder one_f_one_b_order(const PipelineShape& shape, int rank) {
  ComputeOrder order;
  const auto micros = static_cast<uint32_t>(shape.micros);
  const uint32_t ahead = std::min(static_cast<uint32_t>(shape.ranks - 1 - rank), micros);
  for (uint32_t micro = 0; micro < ahead; ++micro) order.push_back({Act::Forward, 0, micro});
  for (uint32_t micro = 0; micro < micros; ++micro) {
    if (micro + ahead < micros) order.push_back({Act::Forward, 0, micro + ahead});
    order.push_back({Act::Backward, 0, micro});
  }
  return order;
}

}  // namespace bev
