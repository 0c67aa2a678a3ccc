// Ranks and times as messages name them.
#pragma once

#include <chrono>
#include <span>
#include <string>

#include "coordination/coordination_client.h"

namespace bev {

// "rank 3", "ranks 3, 5-7". REQUIRES: ascending.
std::string ranks_text(std::span<const int> ranks);
// "rank 3 (host b, pid 4711)"
std::string place_text(const RankIdentity& place);
// "0.3 s", "30 s"
std::string seconds_text(std::chrono::nanoseconds time);

}  // namespace bev
