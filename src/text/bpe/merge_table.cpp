#include "text/bpe/merge_table.h"

#include <algorithm>
#include <bit>

namespace bev {

namespace {

constexpr size_t kFilterBitsPerSlot = 8;

}  // namespace

MergeTable::MergeTable(size_t capacity)
    : slots_(std::bit_ceil(std::max<size_t>(2 * capacity, 8))),
      mask_(slots_.size() - 1),
      filter_(slots_.size() * kFilterBitsPerSlot / 64),
      filter_shift_(64 - std::countr_zero(filter_.size() * 64)) {}

bool MergeTable::insert(int32_t left, int32_t right, Merge merge) {
  const uint64_t pair = key(left, right), hash = hash_of(pair);
  size_t at = home(hash);
  for (; slots_[at].pair != kEmpty; at = (at + 1) & mask_)
    if (slots_[at].pair == pair) return false;
  slots_[at] = {pair, merge};
  filter_[filter_word(hash)] |= filter_bit(hash);
  return true;
}

}  // namespace bev
