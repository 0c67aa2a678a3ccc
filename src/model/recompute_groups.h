// How recomputation divides the blocks of a stage.
#pragma once

#include <cstddef>
#include <vector>

#include "config/run_config.h"

namespace bev {

// Blocks that follow each other. Those that are recomputed keep only what enters the first of them
// and run forward again, all of them, before the backward of the last.
struct BlockGroup {
  size_t first, count;
  bool recomputed;

  size_t end() const { return first + count; }
};

// All blocks of a stage with so many, in order.
std::vector<BlockGroup> block_groups(const RecomputeConfig& recompute, size_t blocks);

}  // namespace bev
