#include "model/recompute_groups.h"

#include <algorithm>

namespace bev {

namespace {

// They come first.
size_t recomputed_blocks(const RecomputeConfig& c, size_t blocks) {
  if (c.granularity != Recompute::Full) return 0;
  if (c.method == RecomputeMethod::Uniform || c.layers == 0) return blocks;
  return std::min(static_cast<size_t>(c.layers), blocks);
}

size_t group_size(const RecomputeConfig& c) {
  const bool in_groups = c.method == RecomputeMethod::Uniform && c.layers > 0;
  return in_groups ? static_cast<size_t>(c.layers) : 1;
}

}  // namespace

std::vector<BlockGroup> block_groups(const RecomputeConfig& recompute, size_t blocks) {
  const size_t recomputed = recomputed_blocks(recompute, blocks), size = group_size(recompute);
  std::vector<BlockGroup> groups;
  for (size_t first = 0; first < recomputed; first += size)
    groups.push_back({first, std::min(size, recomputed - first), true});
  if (recomputed < blocks) groups.push_back({recomputed, blocks - recomputed, false});
  return groups;
}

}  // namespace bev
