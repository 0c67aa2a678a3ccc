#include "text/merge_table.h"

#include <algorithm>
#include <bit>

namespace bev {

MergeTable::MergeTable(size_t capacity)
    : slots_(std::bit_ceil(std::max<size_t>(2 * capacity, 2))), mask_(slots_.size() - 1) {}

bool MergeTable::insert(int32_t left, int32_t right, Merge merge) {
  const uint64_t pair = key(left, right);
  size_t at = home(pair);
  for (; slots_[at].pair != kEmpty; at = (at + 1) & mask_)
    if (slots_[at].pair == pair) return false;
  slots_[at] = {pair, merge};
  return true;
}

}  // namespace bev
