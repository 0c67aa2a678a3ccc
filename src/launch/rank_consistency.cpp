#include "launch/rank_consistency.h"

#include <set>
#include <span>
#include <sstream>
#include <vector>

#include "base/check.h"
#include "base/crypto.h"
#include "base/format.h"

namespace bev {

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream rest(text);
  for (std::string line; std::getline(rest, line);) lines.push_back(line);
  return lines;
}

// The lines of `of` that are not in `than`, each behind `sign`.
std::string lines_beyond(const std::string& than, const std::string& of, char sign, size_t most) {
  const std::vector<std::string> known = lines_of(than);
  const std::set<std::string> there(known.begin(), known.end());
  std::string text;
  size_t count = 0;
  for (const std::string& line : lines_of(of)) {
    if (there.contains(line)) continue;
    if (++count <= most) text += format("\n  {} {}", sign, line);
  }
  if (count > most) text += format("\n  {} ... and {} more lines", sign, count - most);
  return text;
}

}  // namespace

std::string line_difference(const std::string& first, const std::string& other, size_t most) {
  return lines_beyond(other, first, '-', most) + lines_beyond(first, other, '+', most);
}

void require_same_on_ranks(CoordinationClient& control, const std::string& what,
                           const std::string& here) {
  constexpr size_t kMostLines = 20;
  const std::vector<std::string> hashes =
      control.all_gather(sha256(std::as_bytes(std::span(here))));
  std::vector<int> others;
  for (int rank = 1; rank < control.size(); ++rank) {
    if (hashes[static_cast<size_t>(rank)] != hashes.front()) others.push_back(rank);
  }
  if (others.empty()) return;
  // Two texts say what it is: the first rank's, and that of the first other.
  const bool shows = control.rank() == 0 || control.rank() == others.front();
  const std::vector<std::string> texts = control.all_gather(shows ? here : "");
  const RankIdentity& place = control.place(others.front());
  throw Error(
      ErrorKind::Usage,
      format(
          "{} is not the same on all ranks: {} of {} differ from rank 0; rank 0 (-, "
          "host {}) and rank {} (+, host {}):{}",
          what, others.size(), control.size(), control.place(0).host, place.rank, place.host,
          line_difference(texts.front(), texts[static_cast<size_t>(others.front())], kMostLines)));
}

}  // namespace bev
