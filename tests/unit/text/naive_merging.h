// One step of learning merges, by its definition: everything is counted anew each time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace bev::test {

// Words as symbols, and how often each occurs.
using SymbolWords = std::vector<std::pair<std::vector<size_t>, int64_t>>;
using SymbolPair = std::pair<size_t, size_t>;

// The most frequent pair of neighbours, of equals the smallest; none when it is rarer than
// `min_count`.
inline std::optional<SymbolPair> most_frequent_pair(const SymbolWords& words, int64_t min_count) {
  std::map<SymbolPair, int64_t> pairs;
  for (const auto& [ids, count] : words)
    for (size_t i = 0; i + 1 < ids.size(); ++i) pairs[{ids[i], ids[i + 1]}] += count;
  const auto best = std::max_element(
      pairs.begin(), pairs.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (best == pairs.end() || best->second < min_count) return std::nullopt;
  return best->first;
}

// From left to right, without overlap.
inline void replace_pair(SymbolWords& words, SymbolPair pair, size_t symbol) {
  for (auto& [ids, count] : words) {
    std::vector<size_t> merged;
    for (size_t i = 0; i < ids.size(); ++i) {
      const bool here = i + 1 < ids.size() && SymbolPair{ids[i], ids[i + 1]} == pair;
      merged.push_back(here ? symbol : ids[i]);
      i += here ? 1 : 0;
    }
    ids = merged;
  }
}

}  // namespace bev::test
