// Philox in vectors, and dropout of rows. For kernel files (see simd.h).
#pragma once

#include "ops/cpu/kernels/kernels.h"
#include "ops/cpu/simd/vector_loops.h"
#include "ops/cpu/simd/word_vec.h"

namespace bev::cpu {

// The counter of one Philox block per lane, least word first; then its four random words
// (base/philox.h).
template <class W>
struct PhiloxLanes {
  W word[4];
};

// Several vectors of blocks in step: the rounds of one are a chain of slow multiplications.
template <int kRounds = 10, class W, int kCount>
[[gnu::always_inline]] inline void draw(uint64_t key, PhiloxLanes<W> (&lanes)[kCount]) {
  const W multiplier0 = W::broadcast(0xD2511F53), multiplier1 = W::broadcast(0xCD9E8D57);
  auto k0 = static_cast<uint32_t>(key);
  auto k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < kRounds; ++round) {
    const W key0 = W::broadcast(k0), key1 = W::broadcast(k1);
#pragma GCC unroll 2
    for (int i = 0; i < kCount; ++i) {
      W(&c)[4] = lanes[i].word;
      W high0, low0, high1, low1;
      multiply(c[0], multiplier0, high0, low0);
      multiply(c[2], multiplier1, high1, low1);
      c[0] = xor3(high1, c[1], key0);
      c[1] = low1;
      c[2] = xor3(high0, c[3], key1);
      c[3] = low0;
    }
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
}

// Blocks are drawn by the lanes in an order that the transposition of 4 x 4 blocks of lanes undoes.
template <class V>
constexpr uint32_t drawn_block(uint32_t lane) {
  constexpr uint32_t kGroups = V::kWidth / 4;
  return kGroups * (lane % 4) + lane / 4;
}

// The words of drawn blocks in order: the four words become 4 * kWidth consecutive ones.
template <class V>
[[gnu::always_inline]] inline void put_in_order(PhiloxLanes<WordVecOf<V>>& l) {
  V a = as_floats(l.word[0]), b = as_floats(l.word[1]);
  V c = as_floats(l.word[2]), d = as_floats(l.word[3]);
  transpose_quads(a, b, c, d);
  l = {{as_words(a), as_words(b), as_words(c), as_words(d)}};
}

// The draws of kWidth consecutive blocks of one row, word by word: 4 * kWidth columns in order, and
// so on for kCount vectors.
template <class V, int kCount>
[[gnu::always_inline]] inline void draw_columns(uint64_t key, uint64_t row, uint64_t block,
                                                PhiloxLanes<WordVecOf<V>> (&lanes)[kCount]) {
  using W = WordVecOf<V>;
  uint32_t order[V::kWidth];
  for (uint32_t lane = 0; lane < V::kWidth; ++lane) order[lane] = drawn_block<V>(lane);
  for (int i = 0; i < kCount; ++i) {
    const auto first = static_cast<uint32_t>(block) + static_cast<uint32_t>(i * V::kWidth);
    lanes[i] = {
        {W::broadcast(first) + W::load(order), W::broadcast(static_cast<uint32_t>(block >> 32)),
         W::broadcast(static_cast<uint32_t>(row)), W::broadcast(static_cast<uint32_t>(row >> 32))}};
  }
  draw(key, lanes);
  for (PhiloxLanes<W>& l : lanes) put_in_order<V>(l);
}

template <class V, class T>
void dropout(const T* x, const T* residual, T* out, int64_t count, const DropoutDraws& d) {
  using W = WordVecOf<V>;
  constexpr int kBatch = 2;
  constexpr int64_t kSpan = kBatch * 4 * V::kWidth;
  const W threshold = W::broadcast(d.threshold);
  const V scale = V::broadcast(d.scale);
  auto block = static_cast<uint64_t>(d.column) / 4;
  int64_t skipped = d.column % 4;  // words of the first block that belong to columns before
  alignas(64) uint32_t draws[kSpan + V::kWidth] = {};
  for (int64_t i = 0; i < count;) {
    PhiloxLanes<W> lanes_of[kBatch];
    draw_columns<V>(d.key, d.row, block, lanes_of);
    uint32_t* to = draws;
    for (const PhiloxLanes<W>& l : lanes_of) {
      for (const W& word : l.word) {
        word.store(to);
        to += V::kWidth;
      }
    }
    const int64_t span = kSpan - skipped < count - i ? kSpan - skipped : count - i;
    each_vector<V>(span, [&](int64_t j, auto lanes) {
      const auto kept = at_least(W::load(draws + skipped + j), threshold);
      V y = select(kept, lanes.load(x + i + j) * scale, V::zero());
      if (residual != nullptr) y = lanes.load(residual + i + j) + y;
      lanes.store(y, out + i + j);
    });
    i += span;
    skipped = 0;
    block += kBatch * V::kWidth;
  }
}

}  // namespace bev::cpu
