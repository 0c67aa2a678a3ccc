// One thing wrong with a configuration, in the user's words, and the report that lists them all.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace bev {

struct Problem {
  std::string what;   // a sentence without its full stop
  std::string where;  // the flag, or the field with file and line
  std::string why;    // with the numbers
  std::string legal;  // what would be accepted, nearest first
};

// A numbered block per problem; empty parts are left out. `place` is where all of them stand.
std::string report(std::span<const Problem> problems, std::string_view place = "the configuration");

// Throws one Usage error that carries the report. Returns when there is no problem.
void throw_if_any(std::span<const Problem> problems, std::string_view place = "the configuration");

// What the user may have meant.

// Insertions, deletions, replacements and swaps of neighbours that turn one text into the other
// (Damerau-Levenshtein, each neighbour pair swapped at most once).
size_t edit_distance(std::string_view a, std::string_view b);

// The candidate nearest to `text`, the first of equals, upper and lower case alike; empty when even
// the nearest is too far away to be what was meant.
std::string nearest(std::string_view text, std::span<const std::string> candidates);

}  // namespace bev
