#include "config/blend.h"

#include <algorithm>

#include "base/check.h"

namespace bev {

ParsedBlend parse_blend(const TextList& list) {
  const auto is_number = [](const std::string& text) { return parse_real(text).has_value(); };
  if (std::any_of(list.begin(), list.end(), [](const std::string& t) { return t.empty(); }))
    return {{}, "an entry is empty"};
  const auto numbers = std::count_if(list.begin(), list.end(), is_number);
  if (numbers == 0) return {Blend{list, {}}};
  if (list.size() % 2 != 0)
    return {{}, format("{} entries are not pairs of a weight and a file", list.size())};
  Blend blend;
  for (size_t i = 0; i < list.size(); i += 2) {
    const auto weight = parse_real(list[i]);
    if (!weight) return {{}, format("{} stands where a weight should", toml_string(list[i]))};
    if (!(*weight > 0))
      return {{}, format("the weight of {} is {}", toml_string(list[i + 1]), list[i])};
    blend.weights.push_back(*weight);
    blend.prefixes.push_back(list[i + 1]);
  }
  return {std::move(blend)};
}

Blend blend_of(const TextList& list) {
  ParsedBlend parsed = parse_blend(list);
  BEV_CHECK(parsed.blend.has_value(), Internal, "a blend was not checked: {}", parsed.why);
  return std::move(*parsed.blend);
}

}  // namespace bev
