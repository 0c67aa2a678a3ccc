// GEMMs with everything that can be done to the result while it is still in registers.
#pragma once

#include "config/choices.h"
#include "device/exec.h"

namespace bev::ops {

enum class Transpose : uint8_t { No, Yes };

// Applied to the sum, op(a) op(b) [+ out] [+ addend], before it is stored.
enum class Epilogue : uint8_t {
  None,
  Bias,              // + bias
  Activate,          // activation(.)
  BiasActivate,      // activation(. + bias)
  ActivateBackward,  // . * activation'(activation_input)
};

// out = epilogue(op(a) op(b) [+ out] [+ addend]), with op(a) [m, k], op(b) [k, n] and out [m, n],
// summed in f32 or better. With an addend and a bias, backends may round the sum before they add
// the bias. b and bias have a's dtype; out has it too, or its accumulation type; pre_activation and
// activation_input have out's dtype.
struct Matmul {
  ConstTensor a, b;
  Transpose ta = Transpose::No, tb = Transpose::No;
  Tensor out;
  bool accumulate = false;
  ConstTensor addend{};  // [m, n] of out's dtype, optional; not with accumulate or an activation
  Epilogue epilogue = Epilogue::None;
  ConstTensor bias{};              // [n]
  Activation activation{};         // one that is not gated
  Tensor pre_activation{};         // [m, n], optional: receives the argument of the activation
  ConstTensor activation_input{};  // [m, n], for ActivateBackward
  Tensor dbias{};  // [m] of the accumulation type, optional: adds the sums of op(a) over k, so that
                   // a weight-gradient GEMM also computes the bias gradient
};
void matmul(Exec& ex, const Matmul& m);

// Norm of the rows of a before a GEMM: as ops::norm, rounded to a's dtype.
struct FusedNorm {
  NormKind kind{};
  ConstTensor weight{}, bias{};  // [k] of a's dtype; bias as in Norm
  double eps = 1e-5;

  bool present() const { return weight.present(); }
};

// GEMM of inference with constant weights: no pending work writes gemm.b, gemm.bias or the norm's
// weight and bias, so that a backend may read them before earlier work is done. gemm is a forward
// GEMM: a is not transposed, and neither accumulate nor dbias is set.
struct DecodeGemm {
  Matmul gemm;
  FusedNorm norm{};  // optional: applied to the rows of gemm.a
};
void decode_gemm(Exec& ex, const DecodeGemm& d);

}  // namespace bev::ops
