// Kernels that begin while the kernel before them still runs (programmatic dependent launch, sm_90
// and newer): where they take a few microseconds, that is half of the time. Before such a kernel
// has waited for its predecessors it neither writes nor reads: it may only ask for memory to come
// nearer. A kernel that is launched in the ordinary way waits for all of its predecessor by itself.
#pragma once

#include <cstdint>

#include "device/cuda/check.h"

namespace bev::cuda {

// Until all kernels before this one are done and what they have written is visible.
__device__ __forceinline__ void wait_for_predecessors() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// The next kernel may begin as soon as all blocks have come here or have ended.
__device__ __forceinline__ void let_successor_begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Asks for adjacent memory that will be read: it is brought into the cache that all multiprocessors
// share, where what is written later is seen. REQUIRES: both are multiples of 16.
__device__ __forceinline__ void bring_nearer(const void* from, uint32_t bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(from)),
               "r"(bytes)
               : "memory");
#endif
}

// REQUIRES: every thread of the kernel that has an effect calls wait_for_predecessors(). The code
// that serves may come from PTX of an older architecture, which does not wait: it begins late.
template <class... Parameters>
void launch_early(const char* op, void (*kernel)(Parameters...), dim3 blocks, int threads,
                  size_t shared_bytes, cudaStream_t stream, Parameters... arguments) {
  constexpr int kFirstThatWaits = 90;
  cudaFuncAttributes facts{};
  check(cudaFuncGetAttributes(&facts, kernel), op);
  if (shared_bytes > 48 * 1024) {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(shared_bytes)),
          op);
  }
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = facts.ptxVersion >= kFirstThatWaits ? 1 : 0;
  check(cudaLaunchKernelEx(&config, kernel, arguments...), op);
}

// Ops of training as well as of generation begin early where rows are few, as in generation.
template <class... Parameters>
void launch_for_rows(const char* op, int64_t rows, void (*kernel)(Parameters...), unsigned blocks,
                     int threads, cudaStream_t stream, Parameters... arguments) {
  constexpr int64_t kFew = 64;
  if (rows <= kFew) return launch_early(op, kernel, dim3(blocks), threads, 0, stream, arguments...);
  kernel<<<blocks, static_cast<unsigned>(threads), 0, stream>>>(arguments...);
  check_launch(op);
}

}  // namespace bev::cuda
