// Stories in a file, one per line.
#pragma once

#include <cstdint>

#include "base/file.h"
#include "base/function_ref.h"

namespace bev {

// Whole stories first, first + 1, ... of a seed, until both minima are reached.
struct StoryOrder {
  uint64_t seed = 0;
  int64_t first = 0;
  int64_t min_stories = 1;
  int64_t min_bytes = 0;  // newlines included
};

struct StoryTotals {
  int64_t stories = 0;
  int64_t bytes = 0;  // newlines included, so also tokens: a byte each, and one end per story
  double nats = 0;    // -log p of this very text, good to 1e-9 relative

  double nats_per_byte() const { return nats / static_cast<double>(bytes - stories); }
  double nats_per_token() const { return nats / static_cast<double>(bytes); }
};

// Writes without committing. `progress` is told the totals after each block of a few hundred KiB.
// Usage error when training stories would run into those for validation.
StoryTotals write_stories(AtomicFile& file, const StoryOrder& order,
                          FunctionRef<void(const StoryTotals&)> progress);

}  // namespace bev
