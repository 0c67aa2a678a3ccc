// The class of a character in two steps through a table.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "text/unicode_tables.h"

namespace bev {

class UnicodeClasses {
 public:
  // The one table, made at the first call.
  static const UnicodeClasses& table();

  // REQUIRES: c < 0x110000.
  CharClass of(char32_t c) const { return pages_[page_of_[c >> 8]][c & 0xFF]; }

 private:
  using Page = std::array<CharClass, 256>;

  UnicodeClasses();

  std::array<uint16_t, 0x1100> page_of_{};
  std::vector<Page> pages_;  // each content once: most of the code space is all of one class
};

}  // namespace bev
