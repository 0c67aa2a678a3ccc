// What the kernels share: element types, conversions, wide loads, reductions over a warp and a
// block.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "device/cuda/cuda_device.h"
#include "ops/cuda/gpu.h"
#include "tensor/dtype.h"

namespace bev::cuda {

[[noreturn]] void refuse_dtype(const char* op, DType dtype);
[[noreturn]] void refuse_head_dim(const char* op, int64_t head_dim, int64_t most);

// One runtime dtype -> one kernel instance: float, __nv_bfloat16 or __half.
template <class F>
void visit_cuda(DType dtype, const char* op, F&& f) {
  switch (dtype) {
    case DType::f32: f.template operator()<float>(); return;
    case DType::bf16: f.template operator()<__nv_bfloat16>(); return;
    case DType::f16: f.template operator()<__half>(); return;
    default: refuse_dtype(op, dtype);
  }
}

template <class T>
T* data_of(const Tensor& t) {
  return reinterpret_cast<T*>(t.data);
}
template <class T>
const T* data_of(const ConstTensor& t) {
  return reinterpret_cast<const T*>(t.data);
}

template <class T>
__device__ __forceinline__ float to_float(T value) {
  return static_cast<float>(value);
}
// Rounds to nearest even.
template <class T>
__device__ __forceinline__ T from_float(float value) {
  return static_cast<T>(value);
}

__host__ __device__ constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

constexpr unsigned kAllLanes = 0xffffffffu;

// The result is in every lane; the order of additions is fixed.
__device__ __forceinline__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(kAllLanes, value, offset);
  return value;
}
__device__ __forceinline__ float warp_max(float value) {
  for (int offset = 16; offset > 0; offset /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, offset));
  }
  return value;
}

}  // namespace bev::cuda
