// Whole numbers in text, and lists of them: "0-3,8".
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bev {

// The whole text as a number in decimal digits; nothing when it is something else or out of range.
template <std::integral T>
std::optional<T> parse_number(std::string_view text, T least = 0,
                              T most = std::numeric_limits<T>::max()) {
  T value{};
  const auto [stopped, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_whole = error == std::errc() && stopped == text.data() + text.size();
  const bool is_good = is_whole && value >= least && value <= most;
  return is_good ? std::optional(value) : std::nullopt;
}

using NumberRange = std::pair<int64_t, int64_t>;  // first and last

// "0-3,8": numbers that are not negative, and ranges of them, in any order. Any other text
// gives nothing.
std::optional<std::vector<NumberRange>> parse_ranges(std::string_view text);

// The other way round, of ascending numbers. Fewer than `shortest` that follow each other are
// written one by one.
std::string ranges_text(std::span<const int> numbers, std::string_view between, size_t shortest);

}  // namespace bev
