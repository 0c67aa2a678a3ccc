// The flags of a character (char_flag_ranges.h).
#pragma once

#include "text/unicode/code_point_table.h"
#include "text/unicode/generated/char_flag_ranges.h"

namespace bev {

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

}  // namespace bev
