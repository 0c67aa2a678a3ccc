// Philox in vectors, and dropout of rows. For kernel files (see simd.h).
#pragma once

#include "ops/cpu/kernels.h"
#include "ops/cpu/lanes.h"
#include "ops/cpu/word_vec.h"

namespace bev::cpu {

// The four words of one Philox block per lane (base/philox.h).
template <class W>
struct PhiloxLanes {
  W word[4];
};

// For the counter (c3:c2, c1:c0) of each lane.
template <class W>
PhiloxLanes<W> philox_lanes(uint64_t key, W c0, W c1, W c2, W c3) {
  const W multiplier0 = W::broadcast(0xD2511F53), multiplier1 = W::broadcast(0xCD9E8D57);
  auto k0 = static_cast<uint32_t>(key);
  auto k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    W high0, low0, high1, low1;
    multiply(c0, multiplier0, high0, low0);
    multiply(c2, multiplier1, high1, low1);
    c0 = xor3(high1, c1, W::broadcast(k0));
    c1 = low1;
    c2 = xor3(high0, c3, W::broadcast(k1));
    c3 = low0;
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {{c0, c1, c2, c3}};
}

// The draws of kWidth consecutive blocks of one row, word by word: 4 * kWidth columns in order.
// The lanes take the blocks in the order that the transposition of 4 x 4 blocks of lanes undoes.
template <class V>
PhiloxLanes<WordVecOf<V>> philox_columns(uint64_t key, uint64_t row, uint64_t block) {
  using W = WordVecOf<V>;
  constexpr uint32_t kGroups = V::kWidth / 4;
  uint32_t order[V::kWidth];
  for (uint32_t lane = 0; lane < V::kWidth; ++lane) order[lane] = kGroups * (lane % 4) + lane / 4;
  const PhiloxLanes<W> draws = philox_lanes(
      key, W::broadcast(static_cast<uint32_t>(block)) + W::load(order),
      W::broadcast(static_cast<uint32_t>(block >> 32)), W::broadcast(static_cast<uint32_t>(row)),
      W::broadcast(static_cast<uint32_t>(row >> 32)));
  V a = as_floats(draws.word[0]), b = as_floats(draws.word[1]);
  V c = as_floats(draws.word[2]), d = as_floats(draws.word[3]);
  transpose_quads(a, b, c, d);
  return {{as_words(a), as_words(b), as_words(c), as_words(d)}};
}

template <class V, class T>
void dropout(const T* x, const T* residual, T* out, int64_t count, const DropoutDraws& d) {
  using W = WordVecOf<V>;
  constexpr int64_t kSpan = 4 * V::kWidth;
  const W threshold = W::broadcast(d.threshold);
  const V scale = V::broadcast(d.scale);
  auto block = static_cast<uint64_t>(d.column) / 4;
  int64_t skipped = d.column % 4;  // words of the first block that belong to columns before
  uint32_t draw[kSpan + V::kWidth] = {};
  for (int64_t i = 0; i < count;) {
    const auto columns = philox_columns<V>(d.key, d.row, block);
    for (int word = 0; word < 4; ++word) columns.word[word].store(draw + word * V::kWidth);
    const int64_t span = kSpan - skipped < count - i ? kSpan - skipped : count - i;
    each_vector<V>(span, [&](int64_t j, auto lanes) {
      const auto kept = at_least(W::load(draw + skipped + j), threshold);
      V y = select(kept, lanes.load(x + i + j) * scale, V::zero());
      if (residual != nullptr) y = lanes.load(residual + i + j) + y;
      lanes.store(y, out + i + j);
    });
    i += span;
    skipped = 0;
    block += V::kWidth;
  }
}

}  // namespace bev::cpu
