// Attention backward on tensor cores in one pass over keys: dq is added in the order in which
// blocks come.
#pragma once

#include "ops/cuda/attention/softmax_delta.h"

namespace bev::cuda {

// Whether the GPU has the shared memory that these tiles take.
bool one_pass_fits(const ops::AttentionBackward& a);
// `memory`: query_gradient_bytes of it. REQUIRES: tensor_cores_serve, one_pass_fits.
void flash_one_pass(Exec& ex, const ops::AttentionBackward& a, const QuerySums* rows, void* memory);

}  // namespace bev::cuda
