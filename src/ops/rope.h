// Rotary positions (Su et al. 2021), the rotate-half form: dim i turns with dim i + rotary_dim / 2.
#pragma once

#include "device/exec.h"

namespace bev::ops {

// For each head, with a = x[i], b = x[i + half], angle (c, s) = table[positions[token], i]:
//   x[i] = a c - b s,  x[i + half] = b c + a s;  dims at or beyond 2 * half stay.
// The inverse turns back and is the backward. In place.
// x [tokens, heads, head_dim]; positions i32 [tokens]; cosine, sine [table rows, half] of the
// accumulation type.
struct Rope {
  Tensor x;
  ConstTensor positions, cosine, sine;
  bool inverse = false;
};
void rope(Exec& ex, const Rope& r);

}  // namespace bev::ops
