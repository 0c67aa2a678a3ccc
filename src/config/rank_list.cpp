#include "config/rank_list.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace bev {

namespace {

std::optional<int64_t> number(std::string_view text) {
  int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

}  // namespace

std::optional<RankList> RankList::parse(std::string_view text) {
  RankList list;
  if (text == "all") {
    list.ranges_.emplace_back(0, std::numeric_limits<int64_t>::max());
    return list;
  }
  while (true) {
    const size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    const size_t dash = part.find('-');
    const auto first = number(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : number(part.substr(dash + 1));
    if (!first || !last || *last < *first) return std::nullopt;
    list.ranges_.emplace_back(*first, *last);
    if (comma == std::string_view::npos) return list;
    text.remove_prefix(comma + 1);
  }
}

bool RankList::has(int64_t rank) const {
  return std::any_of(ranges_.begin(), ranges_.end(), [&](const auto& range) {
    return range.first <= rank && rank <= range.second;
  });
}

}  // namespace bev
