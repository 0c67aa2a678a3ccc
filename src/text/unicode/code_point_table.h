// A value for each code point in two steps: a page for each 256 of them, each content kept once.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "base/integer.h"

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

}  // namespace bev
