// Copies from global into shared memory that go on beside other work, in batches of a thread's own.
// For memory that only the copying thread reads: others would have to wait at a barrier as well.
#pragma once

#include <cstdint>

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

// Copies of adjacent global memory into shared memory by the copy engine of a multiprocessor (sm_90
// and newer): one thread asks, all threads wait at a barrier that counts the bytes that arrive.

// In shared memory. One thread calls expect() once, before it or others ask for these bytes; who
// waits has met that thread (__syncthreads) after expect(). Serves once.
class Arrival {
 public:
  __device__ __forceinline__ void expect(uint32_t bytes) {
#if __CUDA_ARCH__ >= 900
    const uint32_t address = shared_address(&state_);
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address), "r"(bytes)
                 : "memory");
#endif
  }
  // REQUIRES: addresses and bytes are multiples of 16.
  __device__ __forceinline__ void copy(void* to, const void* from, uint32_t bytes) {
#if __CUDA_ARCH__ >= 900
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(shared_address(to)),
        "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(&state_))
        : "memory");
#endif
  }
  // Until all that was expected is there, for the calling thread to read.
  __device__ __forceinline__ void wait() {
#if __CUDA_ARCH__ >= 900
    uint32_t arrived = 0;
    while (arrived == 0) {
      asm volatile(
          "{\n.reg .pred done;\nmbarrier.try_wait.parity.shared::cta.b64 done, [%1], 0;\n"
          "selp.u32 %0, 1, 0, done;\n}"
          : "=r"(arrived)
          : "r"(shared_address(&state_))
          : "memory");
    }
#endif
  }

 private:
  uint64_t state_;
};

}  // namespace bev::cuda
