// What a choice of algorithm for a GEMM may depend on, and what its operands are called there.
#pragma once

#include "ops/cuda/gpu.h"
#include "ops/matmul.h"

namespace bev::cuda {

inline bool activates(ops::Epilogue e) {
  return e == ops::Epilogue::Activate || e == ops::Epilogue::BiasActivate;
}

// pre_activation or activation_input, whichever there is.
inline ConstTensor side_of(const ops::Matmul& m) {
  return m.pre_activation.present() ? ConstTensor(m.pre_activation) : m.activation_input;
}

inline int64_t depth_of(const ops::Matmul& m) {
  return m.a.shape[m.ta == ops::Transpose::No ? 1 : 0];
}

// The distance of rows; that of a single row is as good as any.
int64_t row_stride(const ConstTensor& t);

// The largest power of two that divides the address, up to 128: parameters, which lie closest,
// begin at multiples of that, and no kernel asks for more.
uint32_t alignment_of(const void* data);

// A change of what these numbers mean, or of the choices among them, makes files of earlier runs
// wrong: GemmAutotuneCache's format must then grow.
using GemmKey = PlanKey<23>;
GemmKey kind_of(const ops::Matmul& m, const DevicePolicy& policy);

// What is added to the product: out itself when accumulating, the addend, or nothing.
ConstTensor added_to(const ops::Matmul& m, bool fused);

// Where the product itself is stored: aside when an activation follows in a kernel of its own, that
// is when it is not `fused`.
Tensor target_of(const ops::Matmul& m, bool fused);

// Whether the library is asked to apply the activation, or its slope, inside the GEMM. It then
// sees the sum before it is rounded, so that the result differs from ops::activate(pre_activation)
// in the last bit; a deterministic device never does this.
bool may_fuse(const ops::Matmul& m, const DevicePolicy& policy);
}  // namespace bev::cuda
