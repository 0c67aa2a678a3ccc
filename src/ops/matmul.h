// GEMMs with everything that can be done to the result while it is still in registers.
#pragma once

#include "config/choices.h"
#include "device/exec.h"

namespace bev::ops {

enum class Transpose : uint8_t { No, Yes };

// What happens to the product (+ out when accumulating, + addend) before it is stored.
enum class Epilogue : uint8_t {
  None,
  Bias,              // + bias
  Activate,          // activation(.)
  BiasActivate,      // activation(. + bias)
  ActivateBackward,  // . * activation'(activation_input)
};

// What happens to the rows of a before the GEMM: ops::norm, rounded to a's dtype.
struct FusedNorm {
  NormKind kind{};
  ConstTensor weight{}, bias{};  // [k] of a's dtype; bias as that of Norm
  double eps = 1e-5;

  bool present() const { return weight.present(); }
};

// out = epilogue(op(a) op(b) [+ out] [+ addend]), summed in f32 or better. Backends may round the
// sum before a bias is added beside an addend. op(a) [m, k], op(b) [k, n], out [m, n]. b and bias
// are of a's dtype; out is too, or of its accumulation type, and pre_activation and
// activation_input are of out's.
struct Matmul {
  ConstTensor a, b;
  Transpose ta = Transpose::No, tb = Transpose::No;
  Tensor out;
  bool accumulate = false;
  ConstTensor addend{};  // [m, n] of out's dtype, may be absent; not beside accumulate or
                         // activation
  Epilogue epilogue = Epilogue::None;
  ConstTensor bias{};              // [n]
  Activation activation{};         // one that is not gated
  Tensor pre_activation{};         // [m, n], may be absent: receives the argument of the activation
  ConstTensor activation_input{};  // [m, n], for ActivateBackward
  bool b_is_constant = false;      // nothing on its way writes b or the norm's weight and bias: a
                                   // backend may read them before what was issued earlier is done
  FusedNorm norm{};                // may be absent; a is not transposed then
  Tensor dbias{};  // [m] of the accumulation type, may be absent: the sums of op(a) over k are
                   // added. A bias gradient then falls out of the weight gradient.
};
void matmul(Exec& ex, const Matmul& m);

}  // namespace bev::ops
