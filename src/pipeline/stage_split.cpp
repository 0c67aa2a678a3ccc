#include "pipeline/stage_split.h"

namespace bev {

StageRange stage_range(const Config& config, const ParallelLayout& layout, int stage) {
  const ParallelConfig& p = config.parallel;
  const int64_t stages = layout.stages(), last = stages - 1;
  const bool is_first = stage == 0, is_last = stage == last;
  const int64_t given_stages = (p.first_layers > 0 ? 1 : 0) + (p.last_layers > 0 ? 1 : 0);
  const int64_t shared_stages = stages - given_stages;
  const int64_t shared_layers = config.model.layers - p.first_layers - p.last_layers;
  // Layers before stage s among those that share evenly.
  const auto before = [&](int64_t s) {
    const int64_t at = s - (p.first_layers > 0 && s > 0 ? 1 : 0);
    return shared_stages > 0 ? shared_layers * at / shared_stages : 0;
  };
  const int64_t first = is_first ? 0 : p.first_layers + before(stage);
  const int64_t end = is_last ? config.model.layers : p.first_layers + before(stage + 1);
  const bool own_end = is_first && p.first_layers > 0 && !is_last;
  return {.first = first,
          .count = (own_end ? p.first_layers : end) - first,
          .has_embedding = is_first,
          .has_head = is_last};
}

}  // namespace bev
