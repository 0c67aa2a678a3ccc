#include "ops/cuda/gemm/gemm_key.h"

#include <algorithm>
#include <bit>

namespace bev::cuda {

using ops::Epilogue;

int64_t row_stride(const ConstTensor& t) {
  return t.shape[0] > 1 ? t.stride[0] : std::max<int64_t>(1, t.shape[1]);
}

uint32_t alignment_of(const void* data) {
  return uint32_t{1} << std::countr_zero(reinterpret_cast<uintptr_t>(data) | 128);
}

GemmKey kind_of(const ops::Matmul& m, const DevicePolicy& policy) {
  const ConstTensor side = side_of(m);
  const auto number = [](auto choice) { return static_cast<int64_t>(choice); };
  return {m.out.shape[0],
          m.out.shape[1],
          depth_of(m),
          number(m.ta),
          number(m.tb),
          row_stride(m.a),
          row_stride(m.b),
          row_stride(m.out),
          side.present() ? row_stride(side) : 0,
          number(m.a.dtype),
          number(m.a.dtype == DType::f32 && policy.tf32),
          number(m.out.dtype),
          number(m.epilogue),
          number(m.activation),
          number(m.accumulate),
          m.addend.present() ? row_stride(m.addend) : 0,
          alignment_of(m.addend.data),
          number(m.pre_activation.present()),
          alignment_of(m.a.data),
          alignment_of(m.b.data),
          alignment_of(m.out.data),
          alignment_of(m.bias.data),
          alignment_of(side.data)};
}

ConstTensor added_to(const ops::Matmul& m, bool fused) {
  return m.accumulate ? ConstTensor(target_of(m, fused)) : m.addend;
}

Tensor target_of(const ops::Matmul& m, bool fused) {
  const bool aside = !fused && activates(m.epilogue) && m.pre_activation.present() && !m.accumulate;
  return aside ? m.pre_activation : m.out;
}

bool may_fuse(const ops::Matmul& m, const DevicePolicy& policy) {
  if (!activates(m.epilogue) && m.epilogue != Epilogue::ActivateBackward) return false;
  // The library's GELU is of the tanh form and may be computed with few bits, which f32 would show.
  if (policy.deterministic || m.activation != Activation::GeluTanh || m.accumulate ||
      m.out.dtype == DType::f32) {
    return false;
  }
  // What the library asks of the auxiliary matrix.
  const ConstTensor side = side_of(m);
  return !side.present() || (row_stride(side) % 8 == 0 && alignment_of(side.data) >= 16);
}

}  // namespace bev::cuda
