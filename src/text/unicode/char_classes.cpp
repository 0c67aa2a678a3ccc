#include "text/unicode/char_classes.h"

namespace bev {

const UnicodeClasses& UnicodeClasses::table() {
  static const UnicodeClasses table;
  return table;
}

UnicodeClasses::UnicodeClasses()
    : classes_([walk = RangeWalk(char_class_ranges().data(),
                                 char_class_ranges().data() + char_class_ranges().size())](
                   char32_t c) mutable {
        const CharClassRange* range = walk.at(c);
        return range == nullptr ? CharClass::Other : range->char_class;
      }) {}

}  // namespace bev
