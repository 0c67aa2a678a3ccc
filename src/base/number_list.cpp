#include "base/number_list.h"

#include "base/format.h"

namespace bev {

std::optional<std::vector<NumberRange>> parse_ranges(std::string_view text) {
  std::vector<NumberRange> ranges;
  for (;;) {
    const size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    const size_t dash = part.find('-');
    const auto first = parse_number<int64_t>(part.substr(0, dash));
    const auto last =
        dash == std::string_view::npos ? first : parse_number<int64_t>(part.substr(dash + 1));
    if (!first || !last || *last < *first) return std::nullopt;
    ranges.emplace_back(*first, *last);
    if (comma == std::string_view::npos) return ranges;
    text.remove_prefix(comma + 1);
  }
}

std::string ranges_text(std::span<const int> numbers, std::string_view between, size_t shortest) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (end - i < shortest) end = i + 1;
    text += format("{}{}", text.empty() ? "" : between, numbers[i]);
    if (end > i + 1) text += format("-{}", numbers[end - 1]);
    i = end;
  }
  return text;
}

}  // namespace bev
