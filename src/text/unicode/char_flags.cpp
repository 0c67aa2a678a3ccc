#include "text/unicode/char_flags.h"

namespace bev {

const CharFlags& CharFlags::table() {
  static const CharFlags table;
  return table;
}

CharFlags::CharFlags()
    : flags_([walk = RangeWalk(char_flag_ranges().data(),
                               char_flag_ranges().data() + char_flag_ranges().size())](
                 char32_t c) mutable {
        const CharFlagRange* range = walk.at(c);
        return range == nullptr ? uint16_t{0} : range->flags;
      }) {}

}  // namespace bev
