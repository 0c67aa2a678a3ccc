// dq as a sum in f32 in device memory, to which blocks that own keys add in the order in which they
// come.
#pragma once

#include "ops/cuda/attention/softmax_delta.h"

namespace bev::cuda {

// A chunk of a row: kQueryChunk columns that lie side by side. The order is
// [sequences, heads, chunks, queries, kQueryChunk].
constexpr int kQueryChunk = 16;

inline int64_t query_chunks(const ops::AttentionBackward& a) {
  return (a.q.shape[2] + kQueryChunk - 1) / kQueryChunk;
}
inline size_t query_gradient_bytes(const ops::AttentionBackward& a) {
  return static_cast<size_t>(a.q.shape[0] * a.q.shape[1] * query_chunks(a) * kQueryChunk) *
         sizeof(float);
}

// Where they lie in the workspace: behind the sums of each query, aligned to 16 bytes.
inline size_t query_gradient_at(const ops::AttentionBackward& a) {
  return (query_sums_bytes(a) + 15) / 16 * 16;
}

}  // namespace bev::cuda
