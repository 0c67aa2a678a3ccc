// The classes of characters that the patterns of byte-level tokenizers tell apart, as ranges. The
// list is generated (tools/make_unicode_tables.py); unicode.h looks characters up.
#pragma once

#include <cstdint>
#include <span>

namespace bev {

enum class CharClass : uint8_t { Other, Letter, Number, Space };

struct CharClassRange {
  char32_t first, last;  // both inside
  CharClass char_class;
};

// Sorted, without overlaps. What is in no range is Other.
std::span<const CharClassRange> char_class_ranges();

}  // namespace bev
