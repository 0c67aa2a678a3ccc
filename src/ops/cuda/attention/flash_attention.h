// Our own attention kernels: every mask, dropout by logical index, any head size. Deterministic,
// but for a backward in one pass.
#pragma once

#include "ops/attention.h"

namespace bev::cuda {

void flash_forward(Exec& ex, const ops::Attention& a, const Tensor& workspace);
bool flash_backward_is_one_pass(const ops::AttentionBackward& a, const DevicePolicy& policy);
void flash_backward(Exec& ex, const ops::AttentionBackward& a, const Tensor& workspace);

// What the backward of attention needs of each query before it looks at keys.

// In the order of lse: [sequences, heads, queries].
struct SoftmaxDelta {
  float lse2;   // lse * log2(e); +infinity for a query that sees no key, so that its P is 0
  float delta;  // sum(dout * out)
};

inline size_t query_sums_bytes(const ops::AttentionBackward& a) {
  return static_cast<size_t>(a.q.shape[0] * a.q.shape[1]) * sizeof(SoftmaxDelta);
}

// dq as a sum in f32 in device memory, to which blocks that own keys add in the order in which they
// come.

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

// Attention backward on tensor cores in one pass over keys: dq is added in the order in which
// blocks come.

// Whether the GPU has the shared memory that these tiles take.
bool one_pass_fits(const ops::AttentionBackward& a);
// `memory`: query_gradient_bytes of it. REQUIRES: tensor_cores_serve, one_pass_fits.
void flash_one_pass(Exec& ex, const ops::AttentionBackward& a, const SoftmaxDelta* rows,
                    void* memory);

// The gradient of the bias alone.

// REQUIRES: dbias is present. `workspace`: what the whole backward takes.
void flash_bias_gradient(Exec& ex, const ops::AttentionBackward& a, const Tensor& workspace);
// `rows`: see SoftmaxDelta.
void add_bias_gradient(Exec& ex, const ops::AttentionBackward& a, const SoftmaxDelta* rows);

// Attention in plain f32 arithmetic: for f32, and for what the tensor cores do not serve.

void simt_forward(Exec& ex, const ops::Attention& a);
// `rows`: see SoftmaxDelta.
void simt_backward(Exec& ex, const ops::AttentionBackward& a, const SoftmaxDelta* rows);
void simt_bias_gradient(Exec& ex, const ops::AttentionBackward& a, const SoftmaxDelta* rows);

}  // namespace bev::cuda
