// Loops over arrays in vectors. The last vector may be partial; its body is the same code, so an
// element's result does not depend on where the array ends. For kernel files (see simd.h).
#pragma once

#include "ops/cpu/simd/simd.h"

namespace bev::cpu {

// 0, 1, 2, ...
template <class V>
V lane_numbers() {
  static constexpr float kLane[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  static_assert(V::kWidth <= 16);
  return V::load(kLane);
}

// All lanes of a vector.
template <class V>
struct WholeVector {
  template <class T>
  V load(const T* p) const {
    return V::load(p);
  }
  template <class T>
  void store(V v, T* p) const {
    v.store(p);
  }
  V live_or(V v, float) const { return v; }
};

// The first `count` lanes; the others load as 0 and are not stored.
template <class V>
struct PartVector {
  int64_t count;

  template <class T>
  V load(const T* p) const {
    return V::load(p, count);
  }
  template <class T>
  void store(V v, T* p) const {
    v.store(p, count);
  }
  // v with `value` in the lanes beyond count.
  V live_or(V v, float value) const {
    const auto live = lane_numbers<V>() < V::broadcast(static_cast<float>(count));
    return select(live, v, V::broadcast(value));
  }
};

// Calls body(i, lanes) for the vectors that cover [0, count). Inlined, or what the body refers to
// would live in memory.
template <class V, class Body>
[[gnu::always_inline]] inline void each_vector(int64_t count, Body&& body) {
  int64_t i = 0;
  for (; i + V::kWidth <= count; i += V::kWidth) body(i, WholeVector<V>{});
  if (i < count) body(i, PartVector<V>{count - i});
}

// Calls body(i, lanes, chain) with chain cycling through [0, 4): one accumulator per chain hides
// the latency of the additions. Which element meets which chain depends on its index only.
constexpr int kChains = 4;
template <class V, class Body>
[[gnu::always_inline]] inline void each_vector_chained(int64_t count, Body&& body) {
  int64_t i = 0;
  for (; i + kChains * V::kWidth <= count; i += kChains * V::kWidth) {
    body(i, WholeVector<V>{}, 0);
    body(i + V::kWidth, WholeVector<V>{}, 1);
    body(i + 2 * V::kWidth, WholeVector<V>{}, 2);
    body(i + 3 * V::kWidth, WholeVector<V>{}, 3);
  }
  for (; i + V::kWidth <= count; i += V::kWidth) body(i, WholeVector<V>{}, 0);
  if (i < count) body(i, PartVector<V>{count - i}, 0);
}

// One accumulator per chain.
template <class V>
struct Chains {
  V chain[kChains] = {V::zero(), V::zero(), V::zero(), V::zero()};
  V& operator[](int i) { return chain[i]; }
  V vector() const { return (chain[0] + chain[1]) + (chain[2] + chain[3]); }
  float total() const { return sum(vector()); }
};

}  // namespace bev::cpu
