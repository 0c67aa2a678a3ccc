// Copies from global into shared memory that go on beside other work, in batches of a thread's own.
// For memory that only the copying thread reads: others would have to wait at a barrier as well.
#pragma once

#include "ops/cuda/primitives/mma.cuh"
#include "ops/cuda/primitives/vector_rows.cuh"

namespace bev::cuda {

// Both addresses are aligned to kWideBytes. What the thread has read from `to` before stays what it
// was: the compiler moves no access across, and a value that has been used has arrived.
template <class T>
__device__ __forceinline__ void copy_group(Group<T>* to, const T* from) {
  const uint32_t address = shared_address(to);
  const size_t source = __cvta_generic_to_global(from);
#pragma unroll
  for (int byte = 0; byte < static_cast<int>(sizeof(Group<T>)); byte += kWideBytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address + byte),
                 "l"(source + byte)
                 : "memory");
  }
}

// The copies since the last batch are one batch, if only an empty one.
__device__ __forceinline__ void end_batch() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Until at most kLeft batches, the latest, are under way.
template <int kLeft>
__device__ __forceinline__ void wait_for_batches() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

}  // namespace bev::cuda
