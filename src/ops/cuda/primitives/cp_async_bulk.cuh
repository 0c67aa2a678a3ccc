// Copies of adjacent global memory into shared memory by the copy engine of a multiprocessor (sm_90
// and newer): one thread asks, all threads wait at a barrier that counts the bytes that arrive.
#pragma once

#include <cstdint>

#include "ops/cuda/primitives/mma.cuh"

namespace bev::cuda {

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
