// A matrix product of our own for what the library does not take: any strides, any alignment, k =
// 0.
#pragma once

#include "ops/matmul.h"

namespace bev::cuda {

// target = op(a) op(b) [+ target] [+ bias], summed in f32. Activations and dbias are left out.
// REQUIRES: target has elements and out's dtype.
void simple_product(Exec& ex, const ops::Matmul& m, const Tensor& target);

}  // namespace bev::cuda
