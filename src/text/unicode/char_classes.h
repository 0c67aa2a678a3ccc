// The class of a character (char_class_ranges.h).
#pragma once

#include "text/unicode/code_point_table.h"
#include "text/unicode/generated/char_class_ranges.h"

namespace bev {

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

}  // namespace bev
