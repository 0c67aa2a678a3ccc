// Which checkpoints a run may remove.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "config/run_config.h"

namespace bev {

struct KeptCheckpoint {
  int64_t iteration = 0;
  std::optional<double> valid_loss{};  // NaN counts as none
  bool is_permanent = false;
};

// Whether a configuration asks for any to go.
bool removes(const CheckpointConfig& config);

// The iterations that may go, oldest first. What stays: the newest checkpoint.keep (at least one),
// multiples of keep_every, the keep_best with the lowest validation loss (of equal ones the newer),
// and what is permanent. So the newest one always stays. REQUIRES: all are good, the oldest first.
std::vector<int64_t> removable(std::span<const KeptCheckpoint> checkpoints,
                               const CheckpointConfig& config);

}  // namespace bev
