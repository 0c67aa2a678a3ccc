// Sums across the lanes of several vectors at once. For kernel files (see simd.h).
#pragma once

#include "ops/cpu/simd/simd.h"

namespace bev::cpu {

// out[i] = the sum of the lanes of the i-th vector; every vector's in the same order.
template <class V>
[[gnu::always_inline]] inline void store_lane_sums(V a, V b, V c, V d, float* out) {
  transpose_quads(a, b, c, d);
  alignas(64) float lane[V::kWidth];
  ((a + b) + (c + d)).store(lane);
  for (int i = 0; i < 4; ++i) {
    float sum = lane[i];
    for (int j = i + 4; j < V::kWidth; j += 4) sum += lane[j];
    out[i] = sum;
  }
}

}  // namespace bev::cpu
