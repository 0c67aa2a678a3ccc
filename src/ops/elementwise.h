// Elementwise ops: copy, fill, scaling, activation, dropout, residual addition.
#pragma once

#include "config/choices.h"
#include "device/exec.h"

namespace bev::ops {

// out = in, converted to out's dtype. Same shape.
struct Copy {
  ConstTensor in;
  Tensor out;
};
void copy(Exec& ex, const Copy& c);

// Every element = value.
struct Fill {
  Tensor out;
  double value = 0;
};
void fill(Exec& ex, const Fill& f);

// y = factor * x.  x, y [rows, width]; y may be x itself.
struct Scaling {
  ConstTensor x;
  double factor = 1;
  Tensor y;
};
void scale(Exec& ex, const Scaling& s);

// The non-linearities of the MLP.
//   gelu-tanh     0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
//   gelu-erf      0.5 x (1 + erf(x / sqrt 2))
//   relu, squared-relu, tanh
//   swiglu        silu(gate) * up;  geglu-*  gelu(gate) * up

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

// Dropout drawn by logical index: the same element of the same sample draws the same number under
// every layout and in every recomputation. There is no generator state.

// Element (row, column) is dropped when its draw is below probability; the rest is scaled by
// 1 / (1 - probability). The draw is word column % 4 of philox(key, rows[row], column / 4), where
// column counts from column_begin.
struct Dropout {
  double probability = 0;  // 0: nothing is drawn, and rows may be absent
  uint64_t key = 0;        // mixes seed, layer and site
  ConstTensor rows{};      // i64 [rows]: the logical row (sample * length + position)
  int64_t column_begin = 0;
};

// The draw is kept when it is at least this; one definition for all backends.
inline uint64_t dropout_threshold(double probability) {
  return static_cast<uint64_t>(probability * 4294967296.0);
}

// y = dropout(x). The backward is the same op on the gradient. In place is allowed.
// x, y [rows, width]
struct DropoutApply {
  ConstTensor x;
  Dropout dropout;
  Tensor y;
};
void dropout(Exec& ex, const DropoutApply& d);

// out = residual + dropout(delta); out may be either operand.  all [rows, width]
struct ResidualAdd {
  ConstTensor residual, delta;
  Dropout dropout{};
  Tensor out;
};
void residual_add(Exec& ex, const ResidualAdd& r);

}  // namespace bev::ops
