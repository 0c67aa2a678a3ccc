#include "device/op_cost.h"

#include <algorithm>

namespace bev {

std::array<int64_t, 4> shape_dims(const Shape& shape) {
  std::array<int64_t, 4> dims{};
  const int merged = std::max(shape.rank() - 4, 0);
  for (int dim = 0; dim < shape.rank(); ++dim) {
    int64_t& to = dims[static_cast<size_t>(std::max(dim - merged, 0))];
    to = dim > 0 && dim <= merged ? to * shape[dim] : shape[dim];
  }
  return dims;
}

Cost total_of(std::span<const OpCost> records) {
  Cost total;
  for (const OpCost& record : records) {
    total.flops += record.flops;
    if (!record.recomputed) total.model_flops += record.model_flops;
    total.bytes_moved += record.bytes_moved;
    total.bytes_sent += record.bytes_sent;
  }
  return total;
}

OpCost& CostLog::add(std::string_view op, int stream) {
  return records_.emplace_back(
      OpCost{.op = op, .phase = phase_, .stream = static_cast<uint8_t>(stream), .stage = stage_});
}

}  // namespace bev
