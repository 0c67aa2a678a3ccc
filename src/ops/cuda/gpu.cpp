#include "ops/cuda/gpu.h"

#include "base/check.h"
#include "device/cuda/check.h"
#include "ops/cuda/cudnn_attention.h"
#include "ops/cuda/products.h"
#include "ops/op_table.h"

namespace bev::cuda {

Gpu::Gpu(const DevicePolicy& policy, int ordinal)
    : CudaDevice(kCudaOps, policy, ordinal), products_(std::make_unique<Products>(*this)) {
  cudnn_ = CudnnAttention::load(*this, why_no_cudnn_);
}

Gpu::~Gpu() = default;

uint64_t Gpu::algorithms() const { return products_->choices_hash(); }

std::string why_no_gpu() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  cudaGetLastError();
  if (status == cudaErrorInsufficientDriver)
    return format("the NVIDIA driver is too old for CUDA {}.{} or there is none",
                  CUDART_VERSION / 1000, CUDART_VERSION / 10 % 100);
  if (status == cudaErrorNoDevice || (status == cudaSuccess && count == 0))
    return "no NVIDIA GPU was found";
  if (status != cudaSuccess) return format("CUDA says: {}", cudaGetErrorString(status));
  return {};
}

size_t free_gpu_memory() {
  size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "asking for free memory");
  return free;
}

}  // namespace bev::cuda
