// Whether a plan fits the memory there is, and what would.
#pragma once

#include <string>
#include <vector>

#include "plan/dry_run.h"

namespace bev {

// The memory a run may use: device.memory_gib, or what the machine has free.
size_t memory_limit(const Config& config);

// A change of flags after which the run fits.
struct Remedy {
  std::string flags;
  size_t bytes = 0;
};

// Remedies that fit into `limit`, least intrusive first; empty when none of those tried does.
std::vector<Remedy> find_remedies(const Config& config, size_t limit);

// Throws a Device error that states need, limit, the largest purposes and the remedies, unless the
// plan fits.
void require_fit(const Config& config, const Plan& plan);

}  // namespace bev
