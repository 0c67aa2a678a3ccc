#include "parallel/parallel_layout.h"

#include "base/format.h"
#include "config/resolve.h"

namespace bev {

int RankGrid::world() const {
  int product = 1;
  for (const auto& [axis, extent] : axes_) product *= extent;
  return product;
}

int RankGrid::size(Axis axis) const {
  for (const auto& [candidate, extent] : axes_) {
    if (candidate == axis) return extent;
  }
  return 1;
}

int RankGrid::coordinate(int rank, Axis axis) const {
  for (const auto& [candidate, extent] : axes_) {
    if (candidate == axis) return rank % extent;
    rank /= extent;
  }
  return 0;
}

std::vector<int> RankGrid::peers(int rank, AxisSet over) const {
  std::vector<int> found{0};
  int stride = 1;
  for (const auto& [axis, extent] : axes_) {
    const bool varies = over.contains(axis);
    const int first = varies ? 0 : coordinate(rank, axis);
    const int end = varies ? extent : first + 1;
    std::vector<int> wider;
    wider.reserve(found.size() * static_cast<size_t>(end - first));
    for (int c = first; c < end; ++c) {
      for (const int other : found) wider.push_back(other + c * stride);
    }
    found = std::move(wider);
    stride *= extent;
  }
  return found;
}

RankGrid ParallelLayout::grid(GridKind kind) const {
  if (kind == GridKind::Experts)
    return {{Axis::Tensor, expert_tensor},
            {Axis::Expert, expert},
            {Axis::Data, expert_data()},
            {Axis::Pipeline, pipeline}};
  return {{Axis::Tensor, tensor},
          {Axis::Context, context},
          {Axis::Data, data},
          {Axis::Pipeline, pipeline}};
}

int ParallelLayout::shards(GridKind kind) const {
  return kind == GridKind::Experts ? expert_data() : context * data;
}

ParallelLayout layout_of(const Config& config) {
  const ParallelConfig& p = config.parallel;
  return {.tensor = static_cast<int>(p.tensor),
          .context = static_cast<int>(p.context),
          .data = static_cast<int>(data_ranks(config)),
          .pipeline = static_cast<int>(p.pipeline),
          .chunks = static_cast<int>(pipeline_chunks(config)),
          .sequence = p.sequence && p.tensor > 1,
          .zero = data_ranks(config) * p.context > 1 ? static_cast<int>(p.zero) : 0,
          .overlaps_grad_reduce = p.overlap_gradients,
          .overlaps_param_gather = p.overlap_parameters};
}

std::string describe(const ParallelLayout& layout) {
  std::string text;
  const auto add = [&](const char* axis, int ranks, const std::string& with) {
    if (ranks > 1) text += format("{} {} {}{}", text.empty() ? ":" : ",", axis, ranks, with);
  };
  add("tensor", layout.tensor, layout.sequence ? " with sequence parallelism" : "");
  add("context", layout.context, "");
  add("data", layout.data, layout.zero > 0 ? format(" with ZeRO {}", layout.zero) : "");
  add("pipeline", layout.pipeline,
      layout.chunks > 1 ? format(" with {} stages each", layout.chunks) : "");
  return format("{} rank{}{}", layout.world(), layout.world() == 1 ? "" : "s", text);
}

}  // namespace bev
