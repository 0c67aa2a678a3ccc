// Key of a kind of GEMM, on which the choice of an algorithm depends, and helpers for its operands.
#pragma once

#include "ops/cuda/gpu.h"
#include "ops/matmul.h"

namespace bev::cuda {

inline bool activates(ops::Epilogue e) {
  return e == ops::Epilogue::Activate || e == ops::Epilogue::BiasActivate;
}

// pre_activation or activation_input, whichever is present.
inline ConstTensor side_of(const ops::Matmul& m) {
  return m.pre_activation.present() ? ConstTensor(m.pre_activation) : m.activation_input;
}

inline int64_t depth_of(const ops::Matmul& m) {
  return m.a.shape[m.ta == ops::Transpose::No ? 1 : 0];
}

// The distance of rows in elements; for a single row its length, since any value is valid.
int64_t row_stride(const ConstTensor& t);

// The largest power of two that divides the address, at most 128: parameters begin at multiples of
// 128 bytes, and no kernel needs more.
uint32_t alignment_of(const void* data);

// If the meaning of these numbers or of the enumerations in them changes, cached files of earlier
// runs are wrong: raise the format version of GemmAutotuneCache.
using GemmKey = PlanKey<23>;
GemmKey kind_of(const ops::Matmul& m, const DevicePolicy& policy);

// The tensor that is added to op(a) op(b): out when accumulating, else the addend, which is
// optional.
ConstTensor added_to(const ops::Matmul& m, bool fused);

// The tensor that the GEMM writes: pre_activation if it is present, nothing is accumulated and an
// activation follows in a separate kernel (not `fused`); else out.
Tensor target_of(const ops::Matmul& m, bool fused);

// Whether cuBLASLt may apply the activation, or its derivative, inside the GEMM. It applies it to
// the sum before rounding, so that the result differs from ops::activate(pre_activation) in the
// last bit; a deterministic device never does this.
bool may_fuse(const ops::Matmul& m, const DevicePolicy& policy);
}  // namespace bev::cuda
