// Rows of a hidden state that heads read: marked tokens, or one for each sequence.
#pragma once

#include "device/exec.h"
#include "parallel/tensor_region.h"

namespace bev {

// The rows `ids` of a hidden state x of `tokens` tokens, on every member of the region, in scratch.
Tensor take_rows(Exec& ex, const TensorRegion& region, int64_t tokens, ConstTensor x,
                 ConstTensor ids);

// dx = drows at the rows `ids`, else 0. Every member of the region has all of drows.
void put_rows(Exec& ex, const TensorRegion& region, int64_t tokens, ConstTensor drows,
              ConstTensor ids, Tensor dx);

}  // namespace bev
