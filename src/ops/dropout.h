// Dropout drawn by logical index: the same element of the same sample draws the same number under
// every layout and in every recomputation. There is no generator state.
#pragma once

#include "device/exec.h"

namespace bev::ops {

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
