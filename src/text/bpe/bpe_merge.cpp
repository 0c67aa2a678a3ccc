#include "text/bpe/bpe_merge.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <vector>

#include "base/check.h"

namespace bev {

namespace {

// Neighbours of a piece as a list, and the merges that are possible in the order in which they
// happen. A position is that of a token's first byte and never changes.
class LongPiece {
 public:
  LongPiece(const MergeTable& table, std::span<int32_t> tokens)
      : table_(table), tokens_(tokens), nodes_(tokens.size()) {
    const auto count = static_cast<uint32_t>(tokens.size());
    for (uint32_t i = 0; i < count; ++i) {
      nodes_[i] = {.before = i == 0 ? kNone : i - 1, .behind = i + 1 < count ? i + 1 : kNone};
      if (const Merge merge = merge_at(i); merge != kNoMerge) {
        nodes_[i].order = order_of(merge);
        due_.push_back(entry(i));
      }
    }
    std::make_heap(due_.begin(), due_.end(), std::greater<>());
  }

  size_t run() {
    while (!due_.empty()) {
      std::pop_heap(due_.begin(), due_.end(), std::greater<>());
      const uint64_t next = due_.back();
      due_.pop_back();
      const auto at = static_cast<uint32_t>(next & UINT32_MAX);
      // An entry whose pair has changed since is out of date: a newer one stands for the place.
      if (nodes_[at].order == next >> 32) merge(at);
    }
    size_t count = 0;
    for (uint32_t at = 0; at != kNone; at = nodes_[at].behind) tokens_[count++] = tokens_[at];
    return count;
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Node {
    uint32_t before = kNone, behind = kNone;
    uint32_t order = kNone;  // of the merge with the token behind
  };

  Merge merge_at(uint32_t at) const {
    const uint32_t behind = nodes_[at].behind;
    return behind == kNone ? kNoMerge : table_.find(tokens_[at], tokens_[behind]);
  }

  uint64_t entry(uint32_t at) const { return uint64_t{nodes_[at].order} << 32 | at; }

  void renew(uint32_t at) {
    nodes_[at].order = order_of(merge_at(at));
    if (nodes_[at].order == kNone) return;
    due_.push_back(entry(at));
    std::push_heap(due_.begin(), due_.end(), std::greater<>());
  }

  void merge(uint32_t at) {
    tokens_[at] = token_of(merge_at(at));
    Node& node = nodes_[at];
    Node& gone = nodes_[node.behind];
    node.behind = gone.behind;
    if (node.behind != kNone) nodes_[node.behind].before = at;
    gone.order = kNone;
    renew(at);
    if (node.before != kNone) renew(node.before);
  }

  const MergeTable& table_;
  std::span<int32_t> tokens_;
  std::vector<Node> nodes_;
  std::vector<uint64_t> due_;  // a heap of (order, position), smallest first
};

}  // namespace

size_t merge_tokens(const MergeTable& table, std::span<int32_t> tokens) {
  return tokens.size() <= kShortPiece ? merge_short(table, tokens) : merge_long(table, tokens);
}

size_t merge_short(const MergeTable& table, std::span<int32_t> tokens) {
  size_t count = tokens.size();
  BEV_CHECK(count <= kShortPiece, Internal, "{} tokens are no short piece", count);
  std::array<Merge, kShortPiece> merges;  // of each token with the one behind it
  for (size_t i = 0; i + 1 < count; ++i) merges[i] = table.find(tokens[i], tokens[i + 1]);
  while (count > 1) {
    size_t first = 0;
    for (size_t i = 1; i + 1 < count; ++i)
      if (merges[i] < merges[first]) first = i;
    if (merges[first] == kNoMerge) break;
    tokens[first] = token_of(merges[first]);
    --count;
    for (size_t i = first + 1; i < count; ++i) tokens[i] = tokens[i + 1];
    for (size_t i = first + 1; i + 1 < count; ++i) merges[i] = merges[i + 1];
    if (first > 0) merges[first - 1] = table.find(tokens[first - 1], tokens[first]);
    if (first + 1 < count) merges[first] = table.find(tokens[first], tokens[first + 1]);
  }
  return count;
}

size_t merge_long(const MergeTable& table, std::span<int32_t> tokens) {
  if (tokens.empty()) return 0;
  BEV_CHECK(tokens.size() < UINT32_MAX, Data,
            "a piece of {} bytes without a boundary cannot be encoded; at most {}", tokens.size(),
            UINT32_MAX - 1);
  return LongPiece(table, tokens).run();
}

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
