// Bias gradients: sums over the tokens, in an order that depends on the shape alone.
#pragma once

#include "ops/matmul.h"

namespace bev::cuda {

// sums[i] += sum over k of op(a)[i, k], in f32. `partial`: memory for sums of parts, any size.
void add_row_sums(Exec& ex, const ConstTensor& a, ops::Transpose ta, const Tensor& sums,
                  std::byte* partial, size_t partial_bytes);

}  // namespace bev::cuda
