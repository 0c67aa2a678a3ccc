// Starting kernels whose dynamic shared memory may exceed 48 KiB.
#pragma once

#include <cstdint>

#include "device/cuda/cuda_check.h"

namespace bev::cuda {

// Launches nothing for zero blocks.
template <class... Parameters>
void launch(const char* op, void (*kernel)(Parameters...), int64_t blocks, int threads,
            size_t shared_bytes, cudaStream_t stream, Parameters... arguments) {
  if (blocks == 0) return;
  if (blocks > INT32_MAX) check(cudaErrorInvalidConfiguration, op);
  if (shared_bytes > 48 * 1024) {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(shared_bytes)),
          op);
  }
  kernel<<<static_cast<unsigned>(blocks), static_cast<unsigned>(threads), shared_bytes, stream>>>(
      arguments...);
  check_launch(op);
}

}  // namespace bev::cuda
