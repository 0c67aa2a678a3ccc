// Keys and values of earlier tokens, kept for the tokens that come after them.
//
// A cache is a row of places, one for a token, in pages of `page` places each. A sequence owns
// pages in any order: its token t is at place pages[t / page] * page + t % page.
#pragma once

#include "device/exec.h"

namespace bev::ops {

// keys[places[t]] = k[t], values[places[t]] = v[t]; a negative place: that token is not kept.
// k, v [tokens, kv_heads, head_dim]; places i32 [tokens], no two alike; keys, values
// [cache places, kv_heads, head_dim], contiguous.
struct CacheWrite {
  ConstTensor k, v, places;
  Tensor keys, values;
};
void cache_write(Exec& ex, const CacheWrite& c);

// One new token of each sequence: its key and value are written to place lengths[i] - 1 of its
// sequence, then its query sees all places of the sequence up to that one, or with a window only
// the last `window` of them:
//   out[i] = softmax(scale * q[i] keys^T) values, head by head as in ops::Attention
// A sequence of length 0 writes nothing, and its out is zeros.
// q, out [sequences, heads, head_dim]; k, v [sequences, kv_heads, head_dim]; lengths i32
// [sequences]; pages i32 [sequences, most pages], those beyond the length mean nothing; keys,
// values [cache places, kv_heads, head_dim], contiguous.
struct DecodeAttention {
  ConstTensor q, k, v;
  ConstTensor lengths, pages;
  int64_t page = 0;
  double scale = 1;
  int64_t window = 0;
  Tensor keys, values, out;
  bool cache_is_settled = false;  // nothing on its way writes lengths, pages or what is cached: a
                                  // backend may read it before what was issued earlier is done
};
void decode_attention(Exec& ex, const DecodeAttention& d);

}  // namespace bev::ops
