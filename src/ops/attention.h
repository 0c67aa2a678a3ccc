// Scaled dot-product attention (Vaswani et al. 2017). No backend holds a length x length matrix.
#pragma once

#include "device/exec.h"

namespace bev::ops {

// Query i of a sequence (position i + query_offset among the keys) sees key j of that sequence when
// every stated condition holds. The tensors list all sequences; i, j and document_start count
// within one.
struct AttentionMask {
  bool causal = true;  // j <= i + query_offset
  int64_t window = 0;  // > 0: j > i + query_offset - window
  // i32 [queries], may be absent: j >= document_start[i]; packed documents
  ConstTensor document_start{};
  // i32 [sequences], optional: i < query_lengths[sequence], j < key_lengths[sequence]; padding
  ConstTensor query_lengths{}, key_lengths{};
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

// out = dropout(softmax(scale * q k^T + bias, masked)) v, head by head; query head h reads
// kv head h / (heads / kv_heads). A query that sees no key gives zeros and lse -infinity.
// q, out [queries, heads, head_dim]; k, v [keys, kv_heads, head_dim]; `sequences` of equal length
// follow each other in both. lse [sequences, heads, queries of one sequence] of the accumulation
// type. bias [heads, queries of one sequence, keys of one sequence], optional: finite, in the dtype
// of q, the same for all sequences.
struct AttentionInput {
  ConstTensor q, k, v;
  int64_t sequences = 1;
  double scale = 1;
  AttentionMask mask{};
  AttentionDropout dropout{};
  ConstTensor bias{};
};
struct Attention : AttentionInput {
  Tensor out, lse;
};
void attention(Exec& ex, const Attention& a);

// With P the probabilities, D the dropout factors (0 or attention_keep_factor), A = P * D:
//   dv = A^T dout,  dA = dout v^T,  dP = dA * D,  delta_i = sum_j P_ij dP_ij = sum(dout_i * out_i)
//   dS = P * (dP - delta),  dq = scale * dS k,  dk = scale * dS^T q,  dbias += dS
// dq, dk, dv are overwritten and have the shapes of q, k, v. dbias, optional, has the shape of the
// bias and the accumulation type; dS is summed over the sequences and added to it.
struct AttentionBackward : AttentionInput {
  ConstTensor dout, out, lse;
  Tensor dq, dk, dv;
  Tensor dbias{};
};
void attention_backward(Exec& ex, const AttentionBackward& a);

// Keys and values of earlier tokens, kept for the tokens that come after them.
//
// A cache is a row of places, one for a token, in pages of `page` places each. A sequence owns
// pages in any order: its token t is at place pages[t / page] * page + t % page.

// keys[places[t]] = k[t], values[places[t]] = v[t]; a negative place: that token is not kept.
// k, v [tokens, kv_heads, head_dim]; places i32 [tokens], no two alike; keys, values
// [cache places, kv_heads, head_dim], contiguous.
struct KvCacheWrite {
  ConstTensor k, v, places;
  Tensor keys, values;
};
void kv_cache_write(Exec& ex, const KvCacheWrite& c);

// One new token of each sequence: its key and value are written to place lengths[i] - 1 of its
// sequence, then its query sees all places of the sequence up to that one, or with a window only
// the last `window` of them:
//   out[i] = softmax(scale * q[i] keys^T + bias) values, head by head as in ops::Attention
// A sequence of length 0 writes nothing, and its out is zeros.
// q, out [sequences, heads, head_dim]; k, v [sequences, kv_heads, head_dim]; lengths i32
// [sequences]; pages i32 [sequences, most pages], those beyond the length mean nothing; keys,
// values [cache places, kv_heads, head_dim], contiguous. bias [heads, positions], optional, in the
// dtype of q: its last column is added to the score of the newest token, the column before to that
// of the token before. It has a column for every place of a sequence, most pages * page, or more.
// ops::relative_bias makes it for one query at query_offset positions - 1.
struct DecodeAttention {
  ConstTensor q, k, v;
  ConstTensor lengths, pages;
  int64_t page = 0;
  double scale = 1;
  int64_t window = 0;
  Tensor keys, values, out;
  ConstTensor bias{};
  bool cache_is_constant = false;  // nothing on its way writes lengths, pages or what is cached: a
                                   // backend may read it before what was issued earlier is done
};
void decode_attention(Exec& ex, const DecodeAttention& d);

}  // namespace bev::ops
