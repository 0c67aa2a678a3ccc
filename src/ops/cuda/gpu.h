// The cuda device together with what its ops keep: library handles and plans.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "device/cuda/cuda_device.h"
#include "device/exec.h"

namespace bev::cuda {

class GemmDispatch;
class CudnnAttention;

class Gpu final : public CudaDevice {
 public:
  explicit Gpu(const DevicePolicy& policy, int ordinal = 0);
  ~Gpu() override;

  GemmDispatch& gemm() { return *gemm_; }
  uint64_t algorithm_hash() const override;
  // Null where cuDNN cannot be loaded; why says why.
  CudnnAttention* cudnn() { return cudnn_.get(); }
  const std::string& why_no_cudnn() const { return why_no_cudnn_; }

 private:
  std::string end_autotune() override;

  std::unique_ptr<GemmDispatch> gemm_;
  std::unique_ptr<CudnnAttention> cudnn_;
  std::string why_no_cudnn_;
};

inline Gpu& gpu_of(Exec& ex) { return static_cast<Gpu&>(ex.device); }
inline cudaStream_t stream_of(Exec& ex) { return gpu_of(ex).stream(ex.stream.index()); }

// Whether the driver was told (CUDA_FORCE_PTX_JIT=1) to compile all code from PTX. NVIDIA's
// libraries hold no PTX, so that kernels of our own then serve everything.
bool runs_from_ptx_only();

// Why no GPU can be used, in a sentence; empty when one can.
std::string why_no_gpu();
// Bytes a run may take: what is free, less what the libraries will take for themselves.
size_t free_gpu_memory();

// The keys of plans: the numbers that a choice depends on, hashed together.

template <size_t N>
using PlanKey = std::array<int64_t, N>;

struct PlanKeyHash {
  template <size_t N>
  size_t operator()(const PlanKey<N>& facts) const {
    uint64_t hash = 0;
    for (const int64_t fact : facts) {
      hash = (hash ^ static_cast<uint64_t>(fact)) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 29;
    }
    return hash;
  }
};

}  // namespace bev::cuda
