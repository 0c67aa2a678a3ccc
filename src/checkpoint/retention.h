// Which checkpoints a rule of how many to keep lets go.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "config/checkpoint_config.h"

namespace bev {

struct KnownCheckpoint {
  int64_t iteration = 0;
  std::optional<double> valid_loss{};
  bool is_permanent = false;
};

// The iterations of those that keep, keep_every and keep_best do not hold, rising. The newest and
// permanent ones always stay.
std::vector<int64_t> removable(std::span<const KnownCheckpoint> checkpoints,
                               const CheckpointConfig& config);

}  // namespace bev
