#include "text/bpe/merge_trainer.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace bev {

namespace {

constexpr size_t kHead = 3;  // numbers before the symbols of a word
constexpr uint32_t kNoSlot = 0;

int64_t count_at(const uint32_t* word) {
  return static_cast<int64_t>(uint64_t{word[1]} << 32 | word[0]);
}

uint64_t hash_of(uint64_t key) {
  const uint64_t mixed = (key ^ key >> 29) * 0x9E3779B97F4A7C15;
  return mixed ^ mixed >> 32;
}

}  // namespace

void PairMerger::Side::resize(size_t symbols) {
  lost.resize(symbols);
  gained.resize(symbols);
  words.resize(symbols);
}

// The pair of this neighbour and the old symbol goes, that with the merged symbol comes.
void PairMerger::Side::change(int32_t neighbour, int64_t count, uint32_t word) {
  const auto i = static_cast<size_t>(neighbour);
  if (gained[i] == 0) touched.push_back(neighbour);
  lost[i] += count;
  gained[i] += count;
  if (words[i].empty() || words[i].back() != word) words[i].push_back(word);
}

void PairMerger::add_word(std::span<const int32_t> symbols, int64_t count) {
  BEV_CHECK(words_.size() + kHead + symbols.size() <= UINT32_MAX, Device,
            "the text has too many different words to learn from: they need more than 16 GiB");
  begins_.push_back(static_cast<uint32_t>(words_.size()));
  words_.push_back(static_cast<uint32_t>(count));
  words_.push_back(static_cast<uint32_t>(static_cast<uint64_t>(count) >> 32));
  words_.push_back(static_cast<uint32_t>(symbols.size()));
  for (const int32_t symbol : symbols) words_.push_back(static_cast<uint32_t>(symbol));
}

int64_t PairMerger::tokens() const {
  int64_t sum = 0;
  for (const uint32_t begin : begins_)
    sum += count_at(&words_[begin]) * static_cast<int64_t>(words_[begin + 2]);
  return sum;
}

size_t PairMerger::slot_of(uint64_t key) const {
  const size_t mask = slots_.size() - 1;
  for (size_t at = static_cast<size_t>(hash_of(key)) & mask;; at = (at + 1) & mask)
    if (slots_[at] == kNoSlot || pairs_[slots_[at] - 1].key == key) return at;
}

PairMerger::Pair* PairMerger::find(uint64_t key) {
  const uint32_t place = slots_[slot_of(key)];
  return place == kNoSlot ? nullptr : &pairs_[place - 1];
}

PairMerger::Pair& PairMerger::insert(uint64_t key) {
  if ((pairs_.size() + 1) * 2 > slots_.size()) {
    slots_.assign(slots_.size() * 2, kNoSlot);
    for (size_t i = 0; i < pairs_.size(); ++i)
      slots_[slot_of(pairs_[i].key)] = static_cast<uint32_t>(i + 1);
  }
  const size_t slot = slot_of(key);
  if (slots_[slot] == kNoSlot) {
    pairs_.push_back({key, 0, {}});
    slots_[slot] = static_cast<uint32_t>(pairs_.size());
  }
  return pairs_[slots_[slot] - 1];
}

void PairMerger::count_pairs() {
  slots_.assign(size_t{1} << 12, kNoSlot);
  for (const uint32_t begin : begins_) {
    const uint32_t* word = &words_[begin];
    const int64_t count = count_at(word);
    for (size_t i = kHead; i + 1 < kHead + word[2]; ++i) {
      Pair& pair = insert(uint64_t{word[i]} << 32 | word[i + 1]);
      pair.count += count;
      if (pair.words.empty() || pair.words.back() != begin) pair.words.push_back(begin);
    }
  }
}

void PairMerger::offer(const Pair& pair) {
  if (pair.count < min_count_) return;
  heap_.push_back({pair.count, pair.key});
  std::push_heap(heap_.begin(), heap_.end());
}

void PairMerger::replace_in(uint32_t begin, SymbolPair pair, int32_t merged) {
  uint32_t* word = &words_[begin];
  const int64_t count = count_at(word);
  const auto left = static_cast<uint32_t>(pair.left), right = static_cast<uint32_t>(pair.right);
  uint32_t* const end = word + kHead + word[2];
  uint32_t* out = word + kHead;
  for (const uint32_t* at = out; at < end;) {
    if (*at != left || at + 1 == end || at[1] != right) {
      *out++ = *at++;
      continue;
    }
    // The neighbour before may be the symbol just made, of which the pair that was gained behind
    // it is lost again.
    if (out != word + kHead) before_.change(static_cast<int32_t>(out[-1]), count, begin);
    if (at + 2 < end) behind_.change(static_cast<int32_t>(at[2]), count, begin);
    *out++ = static_cast<uint32_t>(merged);
    at += 2;
  }
  word[2] = static_cast<uint32_t>(out - (word + kHead));
}

void PairMerger::lose(uint64_t key, int64_t count) {
  Pair* pair = find(key);
  if (pair == nullptr) return;
  pair->count -= count;
  if (pair->count < min_count_) std::vector<uint32_t>().swap(pair->words);
}

void PairMerger::gain(uint64_t key, int64_t count, std::vector<uint32_t>& words) {
  if (count >= min_count_) {
    Pair& pair = insert(key);
    pair.count = count;
    pair.words.assign(words.begin(), words.end());
    offer(pair);
  }
  words.clear();
}

void PairMerger::apply(SymbolPair pair, int32_t merged) {
  const auto made = static_cast<size_t>(merged), left = static_cast<size_t>(pair.left);
  // Of two merged symbols in a row, the first gained the pair with the second's left symbol.
  behind_.gained[left] -= before_.lost[made];
  before_.lost[made] = 0;
  for (const int32_t neighbour : before_.touched) {
    const auto i = static_cast<size_t>(neighbour);
    lose(key_of(neighbour, pair.left), std::exchange(before_.lost[i], 0));
    gain(key_of(neighbour, merged), std::exchange(before_.gained[i], 0), before_.words[i]);
  }
  for (const int32_t neighbour : behind_.touched) {
    const auto i = static_cast<size_t>(neighbour);
    lose(key_of(pair.right, neighbour), std::exchange(behind_.lost[i], 0));
    gain(key_of(merged, neighbour), std::exchange(behind_.gained[i], 0), behind_.words[i]);
  }
  before_.touched.clear();
  behind_.touched.clear();
}

std::vector<SymbolPair> PairMerger::merge(size_t limit, int64_t min_count,
                                          FunctionRef<bool(SymbolPair)> refuse,
                                          FunctionRef<void(size_t)> progress) {
  constexpr size_t kAhead = 8;
  min_count_ = std::max<int64_t>(min_count, 1);
  count_pairs();
  for (const Pair& pair : pairs_) offer(pair);
  std::vector<SymbolPair> merges;
  while (merges.size() < limit && !heap_.empty()) {
    const Candidate best = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end());
    heap_.pop_back();
    Pair& known = *find(best.key);
    if (known.count != best.count) {
      offer(known);
      continue;
    }
    const SymbolPair pair{static_cast<int32_t>(best.key >> 32),
                          static_cast<int32_t>(best.key & UINT32_MAX)};
    if (refuse(pair)) continue;
    const int32_t merged = symbols_ + static_cast<int32_t>(merges.size());
    before_.resize(static_cast<size_t>(merged) + 1);
    behind_.resize(static_cast<size_t>(merged) + 1);
    const std::vector<uint32_t> words = std::exchange(known.words, {});
    known.count = 0;
    for (size_t i = 0; i < words.size(); ++i) {
      if (i + kAhead < words.size()) __builtin_prefetch(&words_[words[i + kAhead]]);
      replace_in(words[i], pair, merged);
    }
    apply(pair, merged);
    merges.push_back(pair);
    progress(merges.size());
  }
  return merges;
}

}  // namespace bev
