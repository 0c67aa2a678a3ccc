// The non-linearities of the MLP.
//   gelu-tanh     0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
//   gelu-erf      0.5 x (1 + erf(x / sqrt 2))
//   relu, squared-relu
//   swiglu        silu(gate) * up;  geglu-*  gelu(gate) * up
#pragma once

#include "config/choices.h"
#include "device/exec.h"

namespace bev::ops {

// y = activation(x).  Plain: x, y [rows, n]; y may be x itself. Gated: x [rows, 2 n] holds gate
// then up, y [rows, n].
struct Activate {
  Activation activation{};
  ConstTensor x;
  Tensor y;
};
void activate(Exec& ex, const Activate& a);

// dx = dy * activation'(x), for a gated one both halves. dx may be x itself; a plain one's may be
// dy.
struct ActivateBackward {
  Activation activation{};
  ConstTensor dy, x;
  Tensor dx;
};
void activate_backward(Exec& ex, const ActivateBackward& a);

}  // namespace bev::ops
