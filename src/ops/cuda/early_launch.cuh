// Kernels that begin while the kernel before them still runs (programmatic dependent launch, sm_90
// and newer). Such a kernel does what does not depend on its predecessors, then waits for them:
//   - before wait_for_predecessors() it writes nothing, and reads only what no kernel since the
//     last but one has written;
//   - let_successor_begin() comes after the wait, so that whatever begins then knows that all but
//     its direct predecessor are done.
// A kernel that is launched in the ordinary way waits for all of its predecessor by itself.
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

}  // namespace bev::cuda
