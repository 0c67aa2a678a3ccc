// Scaled dot-product attention (Vaswani et al. 2017). No backend holds a length x length matrix.
#pragma once

#include "device/exec.h"

namespace bev::ops {

// Query i of a sequence (position i + query_offset among the keys) sees key j of that sequence when
// every stated condition holds. The tensors list all sequences; i, j and first_visible count within
// one.
struct AttentionMask {
  bool causal = true;  // j <= i + query_offset
  int64_t window = 0;  // > 0: j > i + query_offset - window
  // i32 [queries], may be absent: j >= first_visible[i]; packed documents
  ConstTensor first_visible{};
  ConstTensor key_visible{};  // i32 [keys], may be absent: key_visible[j] != 0; padding
  int64_t query_offset = 0;
};

// Probabilities are dropped by logical index: the draw for (query, head, key j) is
// attention_draw(key, rows[query], head, j) of attention_dropout.h, heads counted from head_begin.
// There too: which multiple of 2^-16 a probability stands for.
struct AttentionDropout {
  double probability = 0;
  uint64_t key = 0;
  ConstTensor rows{};  // i64 [queries]: the logical row of each query
  int64_t head_begin = 0;
};

// out = dropout(softmax(scale * q k^T, masked)) v, head by head; query head h reads
// kv head h / (heads / kv_heads). A query that sees no key gives zeros and lse -infinity.
// q, out [queries, heads, head_dim]; k, v [keys, kv_heads, head_dim]; `sequences` of equal length
// follow each other in both. lse [sequences, heads, queries of one sequence] of the accumulation
// type.
struct Attention {
  ConstTensor q, k, v;
  int64_t sequences = 1;
  double scale = 1;
  AttentionMask mask{};
  AttentionDropout dropout{};
  Tensor out, lse;
};
void attention(Exec& ex, const Attention& a);

// With P the probabilities, D the dropout factors (0 or attention_keep_factor), A = P * D:
//   dv = A^T dout,  dA = dout v^T,  dP = dA * D,  delta_i = sum_j P_ij dP_ij = sum(dout_i * out_i)
//   dS = P * (dP - delta),  dq = scale * dS k,  dk = scale * dS^T q
// dq, dk, dv are overwritten and have the shapes of q, k, v.
struct AttentionBackward {
  ConstTensor dout, q, k, v, out, lse;
  int64_t sequences = 1;
  double scale = 1;
  AttentionMask mask{};
  AttentionDropout dropout{};
  Tensor dq, dk, dv;
};
void attention_backward(Exec& ex, const AttentionBackward& a);

}  // namespace bev::ops
