#include "text/unicode_classes.h"

#include <algorithm>

#include "base/integer.h"

namespace bev {

const UnicodeClasses& UnicodeClasses::table() {
  static const UnicodeClasses table;
  return table;
}

UnicodeClasses::UnicodeClasses() {
  const std::span<const CharClassRange> ranges = char_class_ranges();
  size_t range = 0;
  for (size_t number = 0; number < page_of_.size(); ++number) {
    Page page{};
    for (size_t i = 0; i < page.size(); ++i) {
      const auto c = static_cast<char32_t>(number * page.size() + i);
      while (range < ranges.size() && ranges[range].last < c) ++range;
      if (range < ranges.size() && ranges[range].first <= c) page[i] = ranges[range].char_class;
    }
    const auto known = std::find(pages_.begin(), pages_.end(), page);
    page_of_[number] = narrow<uint16_t>(known - pages_.begin());
    if (known == pages_.end()) pages_.push_back(page);
  }
}

}  // namespace bev
