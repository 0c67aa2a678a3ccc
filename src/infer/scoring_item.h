// What is scored: a sequence of ids.
#pragma once

#include <cstdint>
#include <vector>

namespace bev {

// Ids of the vocabulary. Those from `first` on are scored, each from all before it.
struct ScoringItem {
  std::vector<int32_t> ids{};
  int64_t first = 1;  // from 1 to ids.size()

  int64_t scored() const { return static_cast<int64_t>(ids.size()) - first; }
};

}  // namespace bev
