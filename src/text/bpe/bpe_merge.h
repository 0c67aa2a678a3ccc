// The merging of byte-pair encoding: while two neighbours are a pair of the table, the pair that
// comes first in its order, and of several the leftmost, becomes one token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace bev {

// Which pairs of tokens merge, in which order and into what: a hash table keyed by two ids.

// Of two merges the one with the smaller value happens first: the rank stands in the high half, the
// id of the merged token in the low one.
using Merge = uint64_t;
constexpr Merge kNoMerge = UINT64_MAX;

constexpr Merge make_merge(uint32_t order, int32_t token) {
  return uint64_t{order} << 32 | static_cast<uint32_t>(token);
}
constexpr uint32_t order_of(Merge merge) { return static_cast<uint32_t>(merge >> 32); }
constexpr int32_t token_of(Merge merge) { return static_cast<int32_t>(merge & UINT32_MAX); }

class MergeTable {
 public:
  // For at most `capacity` pairs.
  explicit MergeTable(size_t capacity);

  // False, and no change, when the pair is there already. REQUIRES: ids are not negative.
  bool insert(int32_t left, int32_t right, Merge merge);

  // kNoMerge when the pair does not merge.
  Merge find(int32_t left, int32_t right) const {
    const uint64_t pair = key(left, right), hash = hash_of(pair);
    if ((filter_[filter_word(hash)] & filter_bit(hash)) == 0) return kNoMerge;
    for (size_t at = home(hash);; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.pair == pair || slot.pair == kEmpty) return slot.merge;
    }
  }

 private:
  static constexpr uint64_t kEmpty = UINT64_MAX;  // no pair: ids are not negative

  struct Slot {
    uint64_t pair = kEmpty;
    Merge merge = kNoMerge;
  };

  static uint64_t key(int32_t left, int32_t right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }
  static uint64_t hash_of(uint64_t pair) {
    const uint64_t mixed = (pair ^ pair >> 29) * 0x9E3779B97F4A7C15;
    return mixed ^ mixed >> 32;
  }
  size_t home(uint64_t hash) const { return static_cast<size_t>(hash >> 8) & mask_; }
  size_t filter_word(uint64_t hash) const {
    return static_cast<size_t>(hash >> filter_shift_) >> 6;
  }
  uint64_t filter_bit(uint64_t hash) const { return uint64_t{1} << (hash >> filter_shift_ & 63); }

  std::vector<Slot> slots_;  // a power of two, at least half of them empty
  size_t mask_;
  // A bit for each hash that occurs, a power of two of them. Most pairs that are asked for do not
  // merge, and the bits stay in a nearer cache than the slots.
  std::vector<uint64_t> filter_;
  int filter_shift_;
};

// Merges in place; the tokens are then the first of `tokens`, as many as returned. Takes the way
// that suits the length. REQUIRES: fewer than 2^32 tokens.
size_t merge_tokens(const MergeTable& table, std::span<int32_t> tokens);

constexpr size_t kShortPiece = 96;  // tokens

// The same for few tokens: time grows with the square, without memory of its own.
// REQUIRES: at most kShortPiece tokens.
size_t merge_short(const MergeTable& table, std::span<int32_t> tokens);

// The same for any number: n log n, with about 30 bytes for each token meanwhile.
size_t merge_long(const MergeTable& table, std::span<int32_t> tokens);

}  // namespace bev
