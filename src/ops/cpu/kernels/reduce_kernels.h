// Sums of squares and the softmax of long rows. For kernel files (see simd.h).
#pragma once

#include "ops/cpu/kernels/kernels.h"
#include "ops/cpu/simd/vector_loops.h"

namespace bev::cpu {

// Compiler vectors of a size the compiler learns late.
template <class T, int kBytes>
struct LaneArray {
  using Type __attribute__((vector_size(kBytes))) = T;
};

// Sums for the two halves of V in double precision.
template <class V>
struct DoublePair {
  using Doubles = typename LaneArray<double, 4 * V::kWidth>::Type;
  using Floats = typename LaneArray<float, 2 * V::kWidth>::Type;

  Doubles low, high;

  static DoublePair of(V x) {
    Floats half[2];
    static_assert(sizeof half == sizeof x);
    __builtin_memcpy(half, &x, sizeof x);
    return {__builtin_convertvector(half[0], Doubles), __builtin_convertvector(half[1], Doubles)};
  }
  void add(V x) {
    const DoublePair pair = of(x);
    low += pair.low;
    high += pair.high;
  }
  void add_squares(V x) {
    const DoublePair pair = of(x);
    low += pair.low * pair.low;
    high += pair.high * pair.high;
  }
  double total() const {
    double sum = 0;
    for (int i = 0; i < V::kWidth / 2; ++i) sum += low[i] + high[i];
    return sum;
  }
};

template <class V, class T>
double sum_of_squares(const T* x, int64_t count) {
  DoublePair<V> sums[kChains] = {};
  each_vector_chained<V>(
      count, [&](int64_t i, auto lanes, int chain) { sums[chain].add_squares(lanes.load(x + i)); });
  return (sums[0].total() + sums[1].total()) + (sums[2].total() + sums[3].total());
}

// In blocks that stay in the first cache between the maximum and the exponentials; the sums of
// blocks are added in double precision.
template <class V, class T>
SoftmaxSums softmax_sums(const T* logits, int64_t columns) {
  constexpr int64_t kBlock = 2048;
  constexpr float kInfinity = __builtin_inff();
  SoftmaxSums row{.max = -kInfinity, .sum_exp = 0, .sum = 0};
  for (int64_t begin = 0; begin < columns; begin += kBlock) {
    const int64_t count = columns - begin < kBlock ? columns - begin : kBlock;
    const T* x = logits + begin;
    Chains<V> sums;
    V largest[kChains];
    for (V& v : largest) v = V::broadcast(-kInfinity);
    each_vector_chained<V>(count, [&](int64_t i, auto lanes, int chain) {
      const V logit = lanes.load(x + i);
      sums[chain] = sums[chain] + logit;
      largest[chain] = max(lanes.live_or(logit, -kInfinity), largest[chain]);
    });
    row.sum += static_cast<double>(sums.total());
    const float block_max = max_lane(max(max(largest[0], largest[1]), max(largest[2], largest[3])));
    if (block_max > row.max) {
      row.sum_exp *= __builtin_exp(static_cast<double>(row.max) - static_cast<double>(block_max));
      row.max = block_max;
    }
    if (row.max == -kInfinity) continue;
    const V shift = V::broadcast(row.max);
    Chains<V> exps;
    each_vector_chained<V>(count, [&](int64_t i, auto lanes, int chain) {
      const V logit = lanes.live_or(lanes.load(x + i), -kInfinity);
      exps[chain] = exps[chain] + exp(logit - shift);
    });
    row.sum_exp += static_cast<double>(exps.total());
  }
  // A row of nothing but NaN has no maximum.
  if (row.sum != row.sum) row.sum_exp = row.sum;
  return row;
}

template <class V, class T>
void softmax_gradient(const SoftmaxGradientRow<T>& r) {
  const V lse = V::broadcast(r.lse), factor = V::broadcast(r.factor);
  const V minus_offset = V::broadcast(-r.offset);
  each_vector<V>(r.columns, [&](int64_t i, auto lanes) {
    lanes.store(fma(factor, exp(lanes.load(r.logits + i) - lse), minus_offset), r.dlogits + i);
  });
}

}  // namespace bev::cpu
