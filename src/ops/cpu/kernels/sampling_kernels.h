// Long rows of logits before one of them is chosen. For kernel files (see simd.h).
#pragma once

#include "ops/cpu/kernels/kernels.h"
#include "ops/cpu/kernels/reduce_kernels.h"
#include "ops/cpu/simd/vector_loops.h"

namespace bev::cpu {

template <class V, class T>
void finite_logits(const T* in, float* out, int64_t count) {
  const V none = V::broadcast(-__builtin_inff()), infinite = V::broadcast(__builtin_inff());
  each_vector<V>(count, [&](int64_t i, auto lanes) {
    const V x = lanes.load(in + i);
    lanes.store(select(abs(x) < infinite, x, none), out + i);
  });
}

template <class V>
float largest_of(const float* x, int64_t count) {
  V largest[kChains];
  for (V& v : largest) v = V::broadcast(-__builtin_inff());
  each_vector_chained<V>(count, [&](int64_t i, auto lanes, int chain) {
    largest[chain] = max(lanes.live_or(lanes.load(x + i), -__builtin_inff()), largest[chain]);
  });
  return max_lane(max(max(largest[0], largest[1]), max(largest[2], largest[3])));
}

template <class V>
double choice_weights(const ChoiceWeights& c) {
  const V shift = V::broadcast(c.max), temperature = V::broadcast(c.temperature);
  const V lowest = V::broadcast(c.lowest), least = V::broadcast(c.least);
  DoublePair<V> sums[kChains] = {};
  each_vector_chained<V>(c.count, [&](int64_t i, auto lanes, int chain) {
    const V logit = lanes.load(c.logits + i);
    V w = exp((logit - shift) / temperature);
    w = select(logit < lowest, V::zero(), w);
    w = select(w < least, V::zero(), w);
    sums[chain].add(lanes.live_or(w, 0.0f));
    lanes.store(w, c.weights + i);
  });
  return (sums[0].total() + sums[1].total()) + (sums[2].total() + sums[3].total());
}

}  // namespace bev::cpu
