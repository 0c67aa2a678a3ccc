#include "device/cuda/cuda_check.h"

#include "base/check.h"

namespace bev::cuda {

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  throw Error(ErrorKind::Device, format("CUDA, {}: {} ({})", what, cudaGetErrorString(status),
                                        cudaGetErrorName(status)));
}

}  // namespace bev::cuda
