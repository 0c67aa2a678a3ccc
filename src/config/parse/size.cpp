#include "config/parse/size.h"

#include <string>

#include "config/parse/value.h"

namespace bev {

namespace {

bool ends_with(std::string_view text, char upper) {
  return !text.empty() && (text.back() == upper || text.back() == upper - 'A' + 'a');
}

}  // namespace

std::optional<int64_t> parse_size(std::string_view text) {
  if (ends_with(text, 'B')) text.remove_suffix(1);
  const bool binary = ends_with(text, 'I');
  if (binary) text.remove_suffix(1);
  int thousands = 0;
  for (const char suffix : std::string_view("KMGT")) {
    ++thousands;
    if (!ends_with(text, suffix)) continue;
    text.remove_suffix(1);
    if (!binary) {
      // The exponent goes into the text, so that 1.1K is exactly 1100.
      const auto value = parse_integer(std::string(text) + "e" + std::to_string(3 * thousands));
      return value && *value >= 0 ? value : std::nullopt;
    }
    // Powers of two: a double holds the product exactly or it is no integer below 2^53 anyway.
    const auto real = parse_real(text);
    if (!real || *real < 0) return std::nullopt;
    const double value = *real * static_cast<double>(int64_t{1} << (10 * thousands));
    if (value >= 0x1p62 || value != static_cast<double>(static_cast<int64_t>(value)))
      return std::nullopt;
    return static_cast<int64_t>(value);
  }
  if (binary) return std::nullopt;
  const auto value = parse_integer(text);
  return value && *value >= 0 ? value : std::nullopt;
}

}  // namespace bev
