// Starting kernels whose dynamic shared memory may exceed 48 KiB.
#pragma once

#include <cstdint>

#include "device/cuda/cuda_device.h"

namespace bev::cuda {

// Launches nothing for zero blocks.
template <class... Parameters>
void launch(const char* op, void (*kernel)(Parameters...), int64_t blocks, int threads,
            size_t shared_bytes, cudaStream_t stream, Parameters... arguments) {
  if (blocks == 0) return;
  if (blocks > INT32_MAX) check_cuda(cudaErrorInvalidConfiguration, op);
  if (shared_bytes > 48 * 1024) {
    check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(shared_bytes)),
               op);
  }
  kernel<<<static_cast<unsigned>(blocks), static_cast<unsigned>(threads), shared_bytes, stream>>>(
      arguments...);
  check_launch(op);
}

// Kernels that begin while the kernel before them still runs (programmatic dependent launch, sm_90
// and newer): where they take a few microseconds, that is half of the time. Before such a kernel
// has waited for its predecessors it writes nothing and reads only what nobody writes: for the rest
// it may ask to come nearer. A kernel that is launched in the ordinary way waits for all of its
// predecessor by itself.

// Until all kernels before this one are done and what they have written is visible.
__device__ __forceinline__ void grid_dependency_wait() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// The next kernel may begin as soon as all blocks have come here or have ended.
__device__ __forceinline__ void trigger_dependents() {
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

// Whether the code of this kernel that serves knows early launches and clusters: it may come from
// PTX of an older architecture, which does not.
template <class... Parameters>
bool knows_sm90(const char* op, void (*kernel)(Parameters...)) {
  cudaFuncAttributes facts{};
  check_cuda(cudaFuncGetAttributes(&facts, kernel), op);
  return facts.ptxVersion >= 90;
}

// Blocks of the same y and z whose x is in the same stretch of `cluster` are a cluster.
// REQUIRES: as for launch_programmatic(); knows_sm90() where cluster is above 1.
template <class... Parameters>
void launch_clusters(const char* op, void (*kernel)(Parameters...), int64_t cluster, dim3 blocks,
                     int threads, size_t shared_bytes, cudaStream_t stream,
                     Parameters... arguments) {
  if (shared_bytes > 48 * 1024) {
    check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(shared_bytes)),
               op);
  }
  cudaLaunchAttribute attributes[2] = {};
  unsigned count = 0;
  if (knows_sm90(op, kernel)) {
    attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[count++].val.programmaticStreamSerializationAllowed = 1;
  }
  if (cluster > 1) {
    attributes[count].id = cudaLaunchAttributeClusterDimension;
    attributes[count++].val.clusterDim = {static_cast<unsigned>(cluster), 1, 1};
  }
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = count;
  check_cuda(cudaLaunchKernelEx(&config, kernel, arguments...), op);
}

// REQUIRES: every thread of the kernel that has an effect calls grid_dependency_wait(). Code that
// does not know of early launches begins late.
template <class... Parameters>
void launch_programmatic(const char* op, void (*kernel)(Parameters...), dim3 blocks, int threads,
                         size_t shared_bytes, cudaStream_t stream, Parameters... arguments) {
  launch_clusters(op, kernel, 1, blocks, threads, shared_bytes, stream, arguments...);
}

// Ops of training as well as of generation begin early where rows are few, as in generation.
constexpr int64_t kFewRows = 64;

template <class... Parameters>
void launch_for_rows(const char* op, int64_t rows, void (*kernel)(Parameters...), unsigned blocks,
                     int threads, cudaStream_t stream, Parameters... arguments) {
  if (rows <= kFewRows)
    return launch_programmatic(op, kernel, dim3(blocks), threads, 0, stream, arguments...);
  kernel<<<blocks, static_cast<unsigned>(threads), 0, stream>>>(arguments...);
  check_launch(op);
}

}  // namespace bev::cuda
