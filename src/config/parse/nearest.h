// What the user may have meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace bev {

// Insertions, deletions, replacements and swaps of neighbours that turn one text into the other
// (Damerau-Levenshtein, each neighbour pair swapped at most once).
size_t edit_distance(std::string_view a, std::string_view b);

// The candidate nearest to `text`, the first of equals, upper and lower case alike; empty when even
// the nearest is too far away to be what was meant.
std::string nearest(std::string_view text, std::span<const std::string> candidates);

}  // namespace bev
