// Letters, decimal digits and the case of characters as ranges. The list is generated
// (tools/make_case_tables.py); letter_case.h looks characters up.
#pragma once

#include <cstdint>
#include <span>

namespace bev {

// A character may have several of these flags.
enum LetterCaseFlag : uint8_t {
  kLetter = 1 << 0,         // [^\W\d] of a regular expression: also marks and connectors such as _
  kDecimal = 1 << 1,        // \d
  kUpper = 1 << 2,          // Uppercase
  kLower = 1 << 3,          // Lowercase
  kCased = 1 << 4,          // Cased: the two above and title case
  kCaseIgnorable = 1 << 5,  // Case_Ignorable: does not interrupt a word of cased letters
};

struct LetterCaseRange {
  char32_t first, last;  // both inside
  uint8_t flags;
};

// Sorted, without overlaps. A character outside all ranges has no flag.
std::span<const LetterCaseRange> letter_case_ranges();

}  // namespace bev
