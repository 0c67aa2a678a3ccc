// Letters, digits and case of characters as Python and its regular expressions define them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "text/unicode/generated/letter_case_ranges.h"
#include "text/unicode/unicode.h"
#include "text/utf8.h"

namespace bev {

class LetterCase {
 public:
  // The table, built at the first call.
  static const LetterCase& table();

  // The LetterCaseFlag bits. REQUIRES: c < 0x110000.
  uint8_t of(char32_t c) const { return flags_.of(c); }
  bool has(char32_t c, LetterCaseFlag flag) const { return (of(c) & flag) != 0; }

 private:
  LetterCase();

  CodePointTable<uint8_t> flags_;
};

// The first character of any bytes: U+FFFD with length 1 where no valid character begins.
// REQUIRES: bytes is not empty.
Utf8Character first_character(std::string_view bytes);

// Appends Python's str.lower() of the text, which may be any bytes. Unlike append_lower_case, a
// capital sigma at the end of a word becomes the final sigma.
void append_python_lower(std::string_view text, std::string& lower);

}  // namespace bev
