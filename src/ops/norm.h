// Layer norm (Ba et al. 2016) and RMS norm (Zhang and Sennrich 2019), alone and fused with the
// residual addition in front of them.
#pragma once

#include "config/choices.h"
#include "device/exec.h"
#include "ops/elementwise.h"

namespace bev::ops {

// LayerNorm: y = (x - mean) * rstd * weight + bias, rstd = 1 / sqrt(var + eps), var over width.
// RmsNorm:   y = x * rstd * weight,                 rstd = 1 / sqrt(mean(x^2) + eps).
// x, y [..., width]; mean and rstd [rows] of the accumulation type, rows = product of the rest.
struct Norm {
  NormKind kind{};
  ConstTensor x, weight;
  ConstTensor bias{};  // LayerNorm: may be absent; RmsNorm: absent
  double eps = 1e-5;
  Tensor y;
  Tensor mean{};  // LayerNorm only
  Tensor rstd;
};
void norm(Exec& ex, const Norm& n);

// sum = residual + dropout(delta), then norm of sum.  residual, delta, sum, y [rows, width]
struct ResidualNorm {
  ConstTensor residual, delta;
  Dropout dropout{};
  Tensor sum;
  NormKind kind{};
  ConstTensor weight;
  ConstTensor bias{};
  double eps = 1e-5;
  Tensor y;
  Tensor mean{}, rstd;
};
void residual_norm(Exec& ex, const ResidualNorm& n);

// With xhat = (x - mean) * rstd and g = dy * weight (RmsNorm: mean = 0 and no mean(g) term):
//   dx = rstd * (g - mean(g) - xhat * mean(g * xhat)) [+ dresidual]
//   dweight += sum over rows of dy * xhat,  dbias += sum over rows of dy
//   dx_sums += sum over rows of dx, before or after dx is rounded, as the backend likes
// dx may be dresidual itself or dy itself.
struct NormBackward {
  NormKind kind{};
  ConstTensor dy, x, weight;
  ConstTensor mean{}, rstd;
  ConstTensor dresidual{};  // may be absent; rank 2 only
  Tensor dx;
  Tensor dweight;  // accumulation type, added to
  Tensor dbias{};  // the same, when there is a bias
  // The same, may be absent: the gradient of a bias that was added to x.
  Tensor dx_sums{};
};
void norm_backward(Exec& ex, const NormBackward& n);

}  // namespace bev::ops
