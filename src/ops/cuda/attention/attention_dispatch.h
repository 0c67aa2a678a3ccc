// Who serves which attention, and the memory that cuDNN then gets. Decided by sizes, types and
// flags only: the plan asks without a GPU and without addresses. What alone the run can see
// (addresses, the library itself) is for CudnnAttention to refuse; our own kernels then serve.
#pragma once

#include "ops/attention.h"

namespace bev::cuda {

// Indices within one sequence have 32 bits: sums of two numbers below this fit.
constexpr int64_t kAttentionLimit = int64_t{1} << 29;
// Throws unless all are below the limit.
void check_attention_size(int64_t queries, int64_t keys, int64_t offset);

// Which of our own kernels: those on tensor cores (flash_forward.cu) or those in f32
// (simt_attention.cu). The largest score is the largest scaled score only when the scale is
// positive.
constexpr int64_t kMaxTileColumns = 256;
inline bool tensor_cores_serve(const ConstTensor& q, double scale) {
  return q.dtype != DType::f32 && q.shape[2] <= kMaxTileColumns && scale > 0;
}

// Whether these make the backward in one pass, which adds dq in no fixed order, instead of two. A
// GPU without the shared memory for it (flash_one_pass.cu) takes two all the same.
inline bool one_pass_may_serve(const ops::AttentionBackward& a, const DevicePolicy& policy) {
  return !policy.deterministic && tensor_cores_serve(a.q, a.scale);
}

// Whether rows of 16-bit elements keep the 16-byte alignment of the first.
inline bool keeps_alignment(const ConstTensor& t) {
  return t.stride[0] % 8 == 0 && t.stride[1] % 8 == 0;
}

// Why cuDNN may not serve these arguments; empty when it may. The gradient of the bias comes
// from flash_bias_gradient.cu in any case: cuDNN would keep dS of all sequences in memory. The
// order of these is the order in which a user would want to know.
template <class Args>
const char* why_not_cudnn_for(const Args& a, const DevicePolicy& policy) {
  const int64_t head_dim = a.q.shape[2];
  if (a.q.dtype != DType::bf16 && a.q.dtype != DType::f16) return "f32";
  if (policy.deterministic) return "its backward adds in no fixed order";
  if (a.dropout.probability > 0) return "its dropout draws other numbers";
  if (a.mask.document_start.present()) return "packed documents";
  if (a.mask.query_lengths.present() != a.mask.key_lengths.present()) {
    return "lengths of queries or of keys alone";
  }
  if (a.q.shape[0] == 0) return "no queries";
  if (a.k.shape[0] == 0) return "no keys";
  if (a.mask.causal && a.q.shape[0] != a.k.shape[0]) {
    return "a causal mask, and queries and keys differ in number";
  }
  if (a.mask.query_offset != 0) return "queries do not start at the first key";
  if (!a.mask.causal && a.mask.window > 0) return "a window that is not causal";
  if (a.bias.present() && a.mask.window > 0) return "a bias and a window";
  if (head_dim % 8 != 0 || head_dim > 128) return "the head size";
  if (!keeps_alignment(a.q) || !keeps_alignment(a.k) || !keeps_alignment(a.v)) return "strides";
  if (a.bias.present() && !keeps_alignment(a.bias)) return "strides of the bias";
  return "";
}

inline const char* why_not_cudnn(const ops::Attention& a, const DevicePolicy& policy) {
  const char* why = why_not_cudnn_for(a, policy);
  return *why == '\0' && !keeps_alignment(a.out) ? "strides" : why;
}
inline const char* why_not_cudnn(const ops::AttentionBackward& a, const DevicePolicy& policy) {
  const char* why = why_not_cudnn_for(a, policy);
  const bool aligned = keeps_alignment(a.out) && keeps_alignment(a.dout) && keeps_alignment(a.dq) &&
                       keeps_alignment(a.dk) && keeps_alignment(a.dv);
  return *why == '\0' && !aligned ? "strides" : why;
}

template <class Args>
bool cudnn_may_serve(const Args& a, const DevicePolicy& policy) {
  return *why_not_cudnn(a, policy) == '\0';
}

// The most workspace that a plan of cuDNN may ask for; plans that want more are refused.
inline size_t cudnn_forward_budget(const ops::Attention&) { return size_t{1} << 20; }

// dq in f32, a row sum per query, and for grouped queries dk and dv of every query head.
inline size_t cudnn_backward_budget(const ops::AttentionBackward& a) {
  const int64_t rows = a.q.shape[0] * a.q.shape[1], head_dim = a.q.shape[2];
  int64_t bytes = rows * head_dim * 4 + rows * 4 + (int64_t{1} << 20);
  if (a.q.shape[1] != a.k.shape[1]) {
    const auto size = static_cast<int64_t>(size_of(a.q.dtype));
    bytes += 2 * a.k.shape[0] * a.q.shape[1] * head_dim * size;
  }
  return static_cast<size_t>(bytes);
}

}  // namespace bev::cuda
