// Attention in plain f32 arithmetic: for f32, and for what the tensor cores do not serve.
#pragma once

#include "ops/cuda/attention/softmax_delta.h"

namespace bev::cuda {

void simt_forward(Exec& ex, const ops::Attention& a);
// `rows`: see softmax_delta.h.
void simt_backward(Exec& ex, const ops::AttentionBackward& a, const QuerySums* rows);

}  // namespace bev::cuda
