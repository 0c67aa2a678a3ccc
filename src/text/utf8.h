// UTF-8: what is valid, what replaces the rest, and characters of text known to be valid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace bev {

// The length of the longest prefix that is valid UTF-8 (no surrogates, no long forms).
size_t valid_utf8_prefix(std::string_view bytes);

// The bytes with U+FFFD for each longest beginning of a valid sequence that does not continue, and
// for each single byte that begins none: Python's errors="replace".
std::string replace_invalid_utf8(std::string_view bytes);

// The longest prefix of `bytes` that does not end within a UTF-8 character: what a terminal can be
// given now. Bytes that are no UTF-8 at all are not held back.
size_t complete_utf8(std::string_view bytes);

struct Utf8Character {
  char32_t code;
  size_t length;  // bytes
};

// The character at `at`. REQUIRES: a whole valid one stands there.
inline Utf8Character utf8_character(const char* at) {
  const auto byte = [&](size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(at[i]));
  };
  const auto tail = [&](size_t i) { return byte(i) & 0x3F; };
  const char32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  if (first < 0xE0) return {(first & 0x1F) << 6 | tail(1), 2};
  if (first < 0xF0) return {(first & 0x0F) << 12 | tail(1) << 6 | tail(2), 3};
  return {(first & 0x07) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3), 4};
}

// Appends the character. REQUIRES: code < 0x110000.
void append_utf8(char32_t code, std::string& text);

// White space as Python's str.split, str.strip and \s have it, in text that may be any bytes.

// The bytes of the white space character that the text begins with; 0: another one, or none.
size_t white_space_at(std::string_view text);

// Without white space at both ends.
std::string_view strip(std::string_view text);

// The words between white space: how many, and the last one (empty where there is none).
int64_t count_words(std::string_view text);
std::string_view last_word(std::string_view text);

}  // namespace bev
