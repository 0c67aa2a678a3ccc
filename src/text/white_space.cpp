#include "text/white_space.h"

#include <algorithm>

namespace bev {

namespace {

// The longest in UTF-8.
constexpr size_t kLongest = 3;

// The bytes of the white space character that the text ends with.
size_t white_space_before_end(std::string_view text) {
  for (size_t length = 1; length <= std::min(kLongest, text.size()); ++length)
    if (white_space_at(text.substr(text.size() - length)) == length) return length;
  return 0;
}

std::string_view strip_end(std::string_view text) {
  while (const size_t length = white_space_before_end(text)) text.remove_suffix(length);
  return text;
}

}  // namespace

size_t white_space_at(std::string_view text) {
  const auto byte = [&](size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const unsigned first = byte(0), second = byte(1), third = byte(2);
  if (first < 0x80) {
    const bool is_blank = (first >= 0x09 && first <= 0x0D) || (first >= 0x1C && first <= 0x20);
    return is_blank ? 1 : 0;
  }
  if (first == 0xC2) return second == 0x85 || second == 0xA0 ? 2 : 0;  // U+0085, U+00A0
  const unsigned rest = second << 8 | third;
  switch (first) {
    case 0xE1: return rest == 0x9A80 ? 3 : 0;  // U+1680
    case 0xE2: {
      const bool is_blank = (rest >= 0x8080 && rest <= 0x808A) ||  // U+2000 to U+200A
                            rest == 0x80A8 || rest == 0x80A9 ||    // U+2028, U+2029
                            rest == 0x80AF || rest == 0x819F;      // U+202F, U+205F
      return is_blank ? 3 : 0;
    }
    case 0xE3: return rest == 0x8080 ? 3 : 0;  // U+3000
    default: return 0;
  }
}

std::string_view strip(std::string_view text) {
  while (const size_t length = white_space_at(text)) text.remove_prefix(length);
  return strip_end(text);
}

int64_t count_words(std::string_view text) {
  int64_t words = 0;
  bool is_inside = false;
  while (!text.empty()) {
    const size_t blank = white_space_at(text);
    if (blank == 0 && !is_inside) ++words;
    is_inside = blank == 0;
    text.remove_prefix(std::max<size_t>(blank, 1));
  }
  return words;
}

std::string_view last_word(std::string_view text) {
  text = strip_end(text);
  size_t begin = text.size();
  while (begin > 0 && white_space_before_end(text.substr(0, begin)) == 0) --begin;
  return text.substr(begin);
}

}  // namespace bev
