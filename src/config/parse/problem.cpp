#include "config/parse/problem.h"

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

}  // namespace bev
