// The heart of training a byte-pair encoding: words are sequences of symbols, and the most frequent
// pair of neighbours becomes one symbol, again and again.
//
// Among equally frequent pairs the one with the smaller left symbol wins, then the smaller right
// one. Overlapping pairs all count ("aaa" holds "a a" twice); replacing goes from left to right.
//
// No text is ever made in two ways: a symbol's ends are borders in its word until it is made, so
// whatever lies between two such borders is merged alike everywhere. A merged pair is therefore
// always a new symbol, the counts of known pairs only fall, and a pair that was rare when it first
// appeared can be forgotten.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/function_ref.h"

namespace bev {

struct SymbolPair {
  int32_t left, right;
  bool operator==(const SymbolPair&) const = default;
};

class PairMerger {
 public:
  // Symbols are below `symbols`; merged ones are numbered from there on.
  explicit PairMerger(int32_t symbols) : symbols_(symbols) {}

  // REQUIRES: count >= 1. Device error when the words need more than 16 GiB.
  void add_word(std::span<const int32_t> symbols, int64_t count);

  // Merges until there are `limit` merges or no pair occurs `min_count` times, and returns the
  // pairs in order: the i-th is symbol `symbols + i`. A pair for which `refuse` is true is passed
  // over for good. Called once.
  std::vector<SymbolPair> merge(size_t limit, int64_t min_count,
                                FunctionRef<bool(SymbolPair)> refuse,
                                FunctionRef<void(size_t merges)> progress);

  // Of all words together, as they are now.
  int64_t tokens() const;

 private:
  // What a merge changes about pairs that the symbol takes part in, on one side, by neighbour.
  struct Side {
    std::vector<int64_t> lost, gained;
    std::vector<std::vector<uint32_t>> words;  // with the gained pairs
    std::vector<int32_t> touched;
    void resize(size_t symbols);
    void change(int32_t neighbour, int64_t count, uint32_t word);
  };
  struct Pair {
    uint64_t key;
    int64_t count;
    std::vector<uint32_t> words;  // that hold it, or held it once
  };
  struct Candidate {
    int64_t count;
    uint64_t key;
    bool operator<(const Candidate& other) const {
      return count != other.count ? count < other.count : key > other.key;
    }
  };

  static uint64_t key_of(int32_t left, int32_t right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }

  size_t slot_of(uint64_t key) const;
  Pair* find(uint64_t key);
  Pair& insert(uint64_t key);
  void count_pairs();
  void offer(const Pair& pair);
  void replace_in(uint32_t word, SymbolPair pair, int32_t merged);
  void apply(SymbolPair pair, int32_t merged);
  void lose(uint64_t key, int64_t count);
  void gain(uint64_t key, int64_t count, std::vector<uint32_t>& words);

  int32_t symbols_;
  int64_t min_count_ = 1;
  // All words one after another: count (low half, high half), length, symbols. A word shrinks in
  // its place. Words are known by where they begin.
  std::vector<uint32_t> words_;
  std::vector<uint32_t> begins_;
  std::vector<Pair> pairs_;
  std::vector<uint32_t> slots_;  // hash table of places in pairs_ + 1; a power of two
  std::vector<Candidate> heap_;  // counts may be out of date, and are never too small
  Side before_, behind_;
};

}  // namespace bev
