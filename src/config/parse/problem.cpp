#include "config/parse/problem.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/format.h"

namespace bev {

namespace {

void add_part(std::string& text, const char* label, const std::string& part) {
  if (!part.empty()) text += format("   {:<6} {}\n", label, part);
}

}  // namespace

std::string report(std::span<const Problem> problems, std::string_view place) {
  std::string text = format("{} {} in {}\n", problems.size(),
                            problems.size() == 1 ? "problem" : "problems", place);
  for (size_t i = 0; i < problems.size(); ++i) {
    text += format("\n{}. {}\n", i + 1, problems[i].what);
    add_part(text, "where:", problems[i].where);
    add_part(text, "why:", problems[i].why);
    add_part(text, "legal:", problems[i].legal);
  }
  text.pop_back();
  return text;
}

void throw_if_any(std::span<const Problem> problems, std::string_view place) {
  if (!problems.empty()) throw Error(ErrorKind::Usage, report(problems, place));
}

namespace {

// Longer texts are not typing errors of anything we know, and the distance is quadratic.
constexpr size_t kLongest = 96;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

}  // namespace

size_t edit_distance(std::string_view a, std::string_view b) {
  const size_t columns = b.size() + 1;
  std::vector<size_t> before(columns), previous(columns), current(columns);
  for (size_t j = 0; j < columns; ++j) previous[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (size_t j = 1; j < columns; ++j) {
      const size_t replace = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        current[j] = std::min(current[j], before[j - 2] + 1);
    }
    before.swap(previous);
    previous.swap(current);
  }
  return previous[b.size()];
}

std::string nearest(std::string_view text, std::span<const std::string> candidates) {
  if (text.empty() || text.size() > kLongest) return {};
  const std::string wanted = lower(text);
  const std::string* best = nullptr;
  size_t best_distance = std::max<size_t>(2, text.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(wanted, lower(candidate));
    if (distance < best_distance) {
      best_distance = distance;
      best = &candidate;
    }
  }
  return best == nullptr ? std::string{} : *best;
}

}  // namespace bev
