#include "config/parse/notation.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>

#include "base/format.h"
#include "base/number_list.h"

namespace bev {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A decimal number taken apart: digits * 10^exponent.
struct Decimal {
  bool negative = false;
  std::string digits;
  int64_t exponent = 0;
};

// Reads digits that may be separated by single underscores, from position i on.
bool read_digits(std::string_view text, size_t& i, std::string& digits) {
  const size_t begin = i;
  while (i < text.size()) {
    if (is_digit(text[i])) {
      digits += text[i++];
    } else if (text[i] == '_' && i > begin && i + 1 < text.size() && is_digit(text[i - 1]) &&
               is_digit(text[i + 1])) {
      ++i;
    } else {
      break;
    }
  }
  return i > begin;
}

std::optional<Decimal> read_decimal(std::string_view text) {
  Decimal d;
  size_t i = 0;
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) d.negative = text[i++] == '-';
  const bool whole = read_digits(text, i, d.digits);
  bool fraction = false;
  if (i < text.size() && text[i] == '.') {
    const size_t before = d.digits.size();
    fraction = read_digits(text, ++i, d.digits);
    d.exponent = -static_cast<int64_t>(d.digits.size() - before);
  }
  if (!whole && !fraction) return std::nullopt;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && text[i] == '+') ++i;
    int64_t exponent = 0;
    const auto [end, code] = std::from_chars(text.data() + i, text.data() + text.size(), exponent);
    // Rejects absurd exponents, so that the sum below cannot overflow.
    if (code != std::errc{} || std::abs(exponent) > 100000) return std::nullopt;
    i = static_cast<size_t>(end - text.data());
    d.exponent += exponent;
  }
  if (i != text.size()) return std::nullopt;
  return d;
}

// The length of the UTF-8 sequence at the start of `text`; 0 if it is invalid.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  // Rejects overlong forms, surrogates and code points above U+10FFFF.
  const unsigned char second = byte(1);
  if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F)) return 0;
  if ((first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F)) return 0;
  return length;
}

}  // namespace

std::string_view without_blanks(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

std::optional<int64_t> parse_integer(std::string_view text) {
  std::optional<Decimal> d = read_decimal(text);
  if (!d) return std::nullopt;
  std::string& digits = d->digits;
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  while (d->exponent < 0 && !digits.empty() && digits.back() == '0') {
    digits.pop_back();
    ++d->exponent;
  }
  if (digits.empty()) return 0;
  if (d->exponent < 0 || digits.size() + static_cast<size_t>(d->exponent) > 19) return std::nullopt;
  digits.append(static_cast<size_t>(d->exponent), '0');
  if (d->negative) digits.insert(digits.begin(), '-');
  int64_t value = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (code != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

std::optional<double> parse_real(std::string_view text) {
  std::string digits;
  for (const char c : text)
    if (c != '_') digits += c;
  if (!read_decimal(text)) return std::nullopt;  // rejects inf, nan and stray underscores
  const size_t begin = digits[0] == '+' ? 1 : 0;
  double value = 0;
  const auto [end, code] =
      std::from_chars(digits.data() + begin, digits.data() + digits.size(), value);
  if (code != std::errc{} || end != digits.data() + digits.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

std::optional<bool> parse_boolean(std::string_view text) {
  if (text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  return std::nullopt;
}

bool is_plain_text(std::string_view text) {
  while (!text.empty()) {
    const size_t length = text[0] == '\0' ? 0 : utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string real_text(double value) {
  std::string text = format("{}", value);
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text;
}

std::vector<std::string_view> split_words(std::string_view text, char between) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(between), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

std::string enumerate(const std::vector<std::string_view>& words) {
  std::string list;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) list += i + 1 == words.size() ? " or " : ", ";
    list += words[i];
  }
  return list;
}

std::string toml_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      out += format("\\u{:04X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      out += c;
    }
  }
  return out + '"';
}

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
      // The exponent is appended to the text, so that 1.1K is exactly 1100.
      const auto value = parse_integer(std::string(text) + "e" + std::to_string(3 * thousands));
      return value && *value >= 0 ? value : std::nullopt;
    }
    // Multiplying a double by a power of two is exact. If parse_real() had to round, the exact
    // result is not an integer below 2^53.
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

std::optional<RankList> RankList::parse(std::string_view text) {
  RankList list;
  if (text == "all") {
    list.ranges_.emplace_back(0, std::numeric_limits<int64_t>::max());
    return list;
  }
  auto ranges = parse_ranges(text);
  if (!ranges) return std::nullopt;
  list.ranges_ = std::move(*ranges);
  return list;
}

bool RankList::has(int64_t rank) const {
  return std::any_of(ranges_.begin(), ranges_.end(), [&](const auto& range) {
    return range.first <= rank && rank <= range.second;
  });
}

}  // namespace bev
