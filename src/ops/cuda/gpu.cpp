#include "ops/cuda/gpu.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/check.h"
#include "device/cuda/cuda_device.h"
#include "ops/cuda/attention/cudnn_attention.h"
#include "ops/cuda/gemm/gemm_dispatch.h"
#include "ops/op_table.h"
#include "tensor/dtype.h"

namespace bev::cuda {

namespace {

// What cuBLASLt, cuDNN and the driver take for their own code and tables once they are used.
constexpr size_t kLibraryMemory = size_t{1} << 30;

}  // namespace

Gpu::Gpu(const DevicePolicy& policy, int ordinal)
    : CudaDevice(kCudaOps, policy, ordinal), gemm_(std::make_unique<GemmDispatch>(*this)) {
  if (std::getenv("BEVATRON_NO_CUDNN") != nullptr) {
    why_no_cudnn_ = "BEVATRON_NO_CUDNN is set";
  } else if (runs_from_ptx_only()) {
    why_no_cudnn_ = "CUDA_FORCE_PTX_JIT is set, and cuDNN holds no PTX";
  } else {
    cudnn_ = CudnnAttention::load(*this, why_no_cudnn_);
  }
}

Gpu::~Gpu() = default;

uint64_t Gpu::algorithm_hash() const { return gemm_->choices_hash(); }

std::string Gpu::end_autotune() { return gemm_->end_tuning(); }

bool runs_from_ptx_only() {
  const char* forced = std::getenv("CUDA_FORCE_PTX_JIT");
  return forced != nullptr && std::string_view(forced) == "1";
}

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
  check_cuda(cudaMemGetInfo(&free, &total), "asking for free memory");
  return free - std::min(free, kLibraryMemory);
}

[[noreturn]] void refuse_dtype(const char* op, DType dtype) {
  throw Error(
      ErrorKind::Usage,
      format("{}: the cuda device has f32, bf16 and f16, not {}; the reference device has f64", op,
             name_of(dtype)));
}

[[noreturn]] void refuse_head_dim(const char* op, int64_t head_dim, int64_t most) {
  throw Error(
      ErrorKind::Usage,
      format("{}: the cuda device has heads of up to {} dims, not {}; the cpu device has any", op,
             most, head_dim));
}

}  // namespace bev::cuda
