// Character classes, flags and normal forms by code point, in two-level tables.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/integer.h"
#include "text/unicode/generated/char_class_ranges.h"
#include "text/unicode/generated/char_flag_ranges.h"

namespace bev {

template <class T>
class CodePointTable {
 public:
  // Asks value_of for each code point in rising order.
  template <class ValueOf>
  explicit CodePointTable(ValueOf value_of) {
    for (size_t number = 0; number < page_of_.size(); ++number) {
      Page page{};
      for (size_t i = 0; i < page.size(); ++i)
        page[i] = value_of(static_cast<char32_t>(number * page.size() + i));
      const auto known = std::find(pages_.begin(), pages_.end(), page);
      page_of_[number] = narrow<uint16_t>(known - pages_.begin());
      if (known == pages_.end()) pages_.push_back(page);
    }
  }

  // REQUIRES: c < 0x110000.
  T of(char32_t c) const { return pages_[page_of_[c >> 8]][c & 0xFF]; }

 private:
  using Page = std::array<T, 256>;

  std::array<uint16_t, 0x1100> page_of_{};
  std::vector<Page> pages_;
};

// The value of a code point in ranges sorted by `first` that do not overlap. Codes must rise from
// call to call.
template <class Range>
class RangeWalk {
 public:
  explicit RangeWalk(const Range* begin, const Range* end) : at_(begin), end_(end) {}

  // The range with the code; nothing when there is none.
  const Range* at(char32_t c) {
    while (at_ < end_ && at_->last < c) ++at_;
    return at_ < end_ && at_->first <= c ? at_ : nullptr;
  }

 private:
  const Range *at_, *end_;
};

// The classes of ASCII characters, and runs of ASCII letters eight bytes at a time.

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

// The class of a character (char_class_ranges.h).

class UnicodeClasses {
 public:
  // The one table, made at the first call.
  static const UnicodeClasses& table();

  // REQUIRES: c < 0x110000.
  CharClass of(char32_t c) const { return classes_.of(c); }

 private:
  UnicodeClasses();

  CodePointTable<CharClass> classes_;
};

// The flags of a character (char_flag_ranges.h).

class CharFlags {
 public:
  // The one table, made at the first call.
  static const CharFlags& table();

  // REQUIRES: c < 0x110000.
  uint16_t of(char32_t c) const { return flags_.of(c); }
  bool has(char32_t c, CharFlag flag) const { return (of(c) & flag) != 0; }

 private:
  CharFlags();

  CodePointTable<uint16_t> flags_;
};

// Other forms of a text: canonical decomposition and composition, lower case. As the library
// tokenizers has them: what its tables do not know stays as it is.

// REQUIRES of all: valid UTF-8.

// Characters taken apart, marks in their canonical order.
std::string decomposed(std::string_view text);

// The same put together again.
std::string composed(std::string_view text);

// Each character by itself: a sigma at the end of a word becomes the ordinary one.
std::string lower_cased(std::string_view text);

// What the lower case of one character appends. REQUIRES: c < 0x110000.
void append_lower_case(char32_t c, std::string& text);

}  // namespace bev
