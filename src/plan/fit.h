// Whether a plan fits the memory there is, and what would.
#pragma once

#include <string>
#include <vector>

#include "plan/layout_plan.h"

namespace bev {

// The memory a run may use: device.memory_gib, or what the machine has free.
size_t memory_limit(const Config& config);

// Ranks share the memory of a host. GPUs they have alone, unless they are threads of one process.
enum class Ranks : uint8_t { OneProcess, OneGpuEach };

// A change of flags after which the run fits.
struct Remedy {
  std::string flags;
  size_t bytes = 0;
};

// Remedies that fit into `limit`, least intrusive first; empty when none of those tried does.
std::vector<Remedy> find_remedies(const Config& config, size_t limit,
                                  Ranks ranks = Ranks::OneProcess);

// Throws a Device error that states need, limit, the largest purposes and the remedies, unless the
// plan fits.
void require_fit(const Config& config, const LayoutPlan& plan, Ranks ranks = Ranks::OneProcess);

}  // namespace bev
