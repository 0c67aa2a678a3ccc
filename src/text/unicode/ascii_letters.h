// The classes of ASCII characters, and runs of ASCII letters eight bytes at a time.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "text/unicode/generated/char_class_ranges.h"

namespace bev {

inline constexpr std::array<CharClass, 128> kAsciiClass = [] {
  std::array<CharClass, 128> classes{};
  for (size_t c = 'a'; c <= 'z'; ++c) classes[c] = classes[c - 'a' + 'A'] = CharClass::Letter;
  for (size_t c = '0'; c <= '9'; ++c) classes[c] = CharClass::Number;
  for (size_t c = '\t'; c <= '\r'; ++c) classes[c] = CharClass::Space;
  classes[' '] = CharClass::Space;
  return classes;
}();

inline bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }

// How many of the eight bytes, from the first on, are ASCII letters. All bytes are compared at once
// with one bit of each as the answer; no sum carries into the neighbour.
inline size_t letters_of_eight(const char* at) {
  static_assert(std::endian::native == std::endian::little);
  constexpr uint64_t kOnes = 0x0101010101010101, kHigh = 0x80 * kOnes;
  uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  const uint64_t lower = (word | 0x20 * kOnes) & ~kHigh;
  const uint64_t from_a = lower + (0x80 - 'a') * kOnes;
  const uint64_t behind_z = lower + (0x7F - 'z') * kOnes;
  const uint64_t other = ~(from_a & ~behind_z & ~word) & kHigh;
  return static_cast<size_t>(std::countr_zero(other)) / 8;  // 8 when there is no other
}

}  // namespace bev
