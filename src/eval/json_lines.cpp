#include "eval/json_lines.h"

#include "base/error.h"
#include "base/format.h"
#include "text/white_space.h"

namespace bev {

void for_each_json_line(std::string_view name, std::string_view text,
                        FunctionRef<void(std::string_view line, int64_t number)> f) {
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (strip(line).empty()) continue;
    try {
      f(line, number);
    } catch (const Error& error) {
      throw Error(error.kind, format("{}: line {}: {}", name, number, error.what()));
    }
  }
}

}  // namespace bev
