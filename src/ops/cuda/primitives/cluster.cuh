// Clusters (sm_90 and newer): blocks that run at the same time and reach each other's shared
// memory. Every thread of every block takes part in each meeting, and a block whose memory another
// one writes stays until they have met after that.
#pragma once

#include <cstdint>

namespace bev::cuda {

// All GPUs that have clusters have them of this size.
constexpr int64_t kMostClusterBlocks = 8;

// A meeting has two halves; what a thread wrote before the first is seen by all after the second.
__device__ __forceinline__ void announce_to_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
#endif
}
__device__ __forceinline__ void wait_for_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
#endif
}

// *to = value in the shared memory of block `rank` of the cluster, which is known to have begun.
// REQUIRES: `to` is where this block has the same variable.
__device__ __forceinline__ void store_in_block(float2* to, int rank, float2 value) {
#if __CUDA_ARCH__ >= 900
  uint32_t there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;"
      : "=r"(there)
      : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(to))), "r"(rank));
  asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};" ::"r"(there), "f"(value.x), "f"(value.y)
               : "memory");
#endif
}

}  // namespace bev::cuda
