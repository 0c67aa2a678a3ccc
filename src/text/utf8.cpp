#include "text/utf8.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace bev {

namespace {

struct Sequence {
  size_t length;  // of the character, or of what one replacement stands for
  bool valid;
};

// Which bytes may follow a first byte; those behind the second are always 80 to BF.
struct Follow {
  size_t length;
  unsigned char second_from, second_to;
};

Follow follow_of(unsigned char first) {
  if (first >= 0xC2 && first <= 0xDF) return {2, 0x80, 0xBF};
  if (first == 0xE0) return {3, 0xA0, 0xBF};
  if (first == 0xED) return {3, 0x80, 0x9F};  // above: surrogates
  if (first >= 0xE1 && first <= 0xEF) return {3, 0x80, 0xBF};
  if (first == 0xF0) return {4, 0x90, 0xBF};
  if (first == 0xF4) return {4, 0x80, 0x8F};  // above: beyond U+10FFFF
  if (first >= 0xF1 && first <= 0xF3) return {4, 0x80, 0xBF};
  return {0, 0, 0};
}

// REQUIRES: bytes is not empty.
Sequence sequence_at(std::string_view bytes) {
  const auto first = static_cast<unsigned char>(bytes[0]);
  if (first < 0x80) return {1, true};
  const Follow follow = follow_of(first);
  if (follow.length == 0) return {1, false};
  for (size_t i = 1; i < follow.length; ++i) {
    if (i == bytes.size()) return {i, false};
    const auto byte = static_cast<unsigned char>(bytes[i]);
    const unsigned char from = i == 1 ? follow.second_from : 0x80;
    const unsigned char to = i == 1 ? follow.second_to : 0xBF;
    if (byte < from || byte > to) return {i, false};
  }
  return {follow.length, true};
}

bool eight_are_ascii(const char* at) {
  uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return (word & 0x8080808080808080) == 0;
}

}  // namespace

size_t valid_utf8_prefix(std::string_view bytes) {
  size_t at = 0;
  while (at < bytes.size()) {
    if (bytes.size() - at >= 8 && eight_are_ascii(bytes.data() + at)) {
      at += 8;
      continue;
    }
    const Sequence next = sequence_at(bytes.substr(at));
    if (!next.valid) break;
    at += next.length;
  }
  return at;
}

std::string replace_invalid_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (;;) {
    const size_t good = valid_utf8_prefix(bytes);
    text += bytes.substr(0, good);
    bytes.remove_prefix(good);
    if (bytes.empty()) return text;
    append_utf8(0xFFFD, text);
    bytes.remove_prefix(sequence_at(bytes).length);
  }
}

size_t complete_utf8(std::string_view bytes) {
  const auto byte_at = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  for (size_t back = 1; back <= 3 && back <= bytes.size(); ++back) {
    const unsigned char c = byte_at(bytes.size() - back);
    if ((c & 0xC0) == 0x80) continue;               // inside a character: look for its first byte
    if (c < 0xC2 || c > 0xF4) return bytes.size();  // a whole character, or none at all
    const size_t length = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
    return length > back ? bytes.size() - back : bytes.size();
  }
  return bytes.size();
}

void append_utf8(char32_t code, std::string& text) {
  const auto put = [&](char32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xC0 | code >> 6);
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
  }
  put(0x80 | (code & 0x3F));
}

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
