// Whether a plan fits the memory there is, and what would.
#pragma once

#include <string>
#include <vector>

#include "plan/layout_plan.h"

namespace bev {

// The memory a run may use: device.memory_gib, or what the machine has free.
size_t memory_limit(const Config& config);

// How many ranks share the memory that is looked at: all, as threads of one process do, or some, as
// processes on one of several machines or with a GPU each do.
inline constexpr int kAllRanks = 0;

// A change of flags after which the run fits.
struct FitSuggestion {
  std::string flags;
  size_t bytes = 0;
};

// Remedies that fit into `limit`, least intrusive first; empty when none of those tried does.
std::vector<FitSuggestion> find_remedies(const Config& config, size_t limit,
                                         int sharing = kAllRanks);

// Throws a Device error that states need, limit, the largest purposes and the remedies, unless the
// plan fits.
void require_fit(const Config& config, const LayoutPlan& plan, int sharing = kAllRanks);

}  // namespace bev
