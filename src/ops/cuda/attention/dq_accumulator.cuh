// How kernels reach the sums of DqAccumulator (flash_attention.h).
#pragma once

#include "ops/cuda/attention/flash_attention.h"
#include "ops/cuda/primitives/element_types.cuh"

namespace bev::cuda {

// Where `inside`, adds at an address aligned to 16 bytes; nobody waits for it.
__device__ __forceinline__ void add_four(float* to, bool inside, float a, float b, float c,
                                         float d) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n.reg .pred inside;\nsetp.ne.b32 inside, %1, 0;\n"
      "@inside red.relaxed.gpu.global.add.v4.f32 [%0], {%2, %3, %4, %5};\n}" ::"l"(
          __cvta_generic_to_global(to)),
      "r"(static_cast<int>(inside)), "f"(a), "f"(b), "f"(c), "f"(d)
      : "memory");
#else
  if (!inside) return;
  atomicAdd(to, a);
  atomicAdd(to + 1, b);
  atomicAdd(to + 2, c);
  atomicAdd(to + 3, d);
#endif
}

// Of a chunk's 16 columns, lane t of four holds 2 t, 2 t + 1, 2 t + 8 and 2 t + 9 of a fragment:
// they lie side by side, at 4 t.
struct DqAccumulator {
  float* sums;
  int queries, chunks;

  // `head`: counted over all sequences.
  __device__ __forceinline__ float* at(int64_t head, int chunk, int query) const {
    return sums + ((head * chunks + chunk) * queries + query) * kQueryChunk;
  }
};

// `memory`: query_gradient_bytes of it, aligned to 16 bytes.
DqAccumulator cleared_query_gradient(Exec& ex, const ops::AttentionBackward& a, void* memory);
// a.dq = factor * gradient. REQUIRES: bf16 or f16.
void store_query_gradient(Exec& ex, const ops::AttentionBackward& a, const DqAccumulator& gradient,
                          double factor);

}  // namespace bev::cuda
