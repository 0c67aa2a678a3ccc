// Attention of one sequence as the kernels see it: plain pointers and strides, no tensors.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bev::cpu {

// Queries and keys are taken in tiles of this many; see attention_kernels.h.
constexpr int64_t kQueryTile = 64, kKeyTile = 64;
constexpr int64_t kMaxHeadDim = 512;
// Query tiles that may share the packing of a key tile.
constexpr int64_t kQueryTilesPerTask = 4;

// A [tokens, heads, head_dim] tensor; strides in elements.
template <class T>
struct HeadRows {
  T* data;
  int64_t token_stride, head_stride;
};

// Which keys of the sequence a query sees (ops::AttentionMask); the pointers are those of the
// sequence and may be null.
struct TileMask {
  bool causal;
  int64_t window;
  int64_t query_offset;
  const int32_t* document_start;
  int64_t query_length, key_length;  // without padding
};

// ops::AttentionDropout; rows null: none. Draws of 16 bits below the threshold are dropped.
struct TileDropout {
  const int64_t* rows;
  uint64_t key;
  int64_t head_begin;
  uint32_t threshold;
  float scale;
};

// A [heads, queries, keys] tensor, or null; strides in elements.
template <class T>
struct PairRows {
  T* data;
  int64_t head_stride, query_stride;

  T* at(int64_t head, int64_t query, int64_t key) const {
    return data + head * head_stride + query * query_stride + key;
  }
};

struct AttentionSizes {
  int64_t queries, keys, heads, kv_heads, head_dim;
  float scale;
};

template <class T>
struct AttentionForward {
  AttentionSizes size;
  TileMask mask;
  TileDropout dropout;
  HeadRows<const T> q, k, v;
  PairRows<const T> bias;
  HeadRows<T> out;
  float* lse;  // [heads, queries]
  int64_t lse_stride;
};

template <class T>
struct AttentionGradient {
  AttentionSizes size;
  TileMask mask;
  TileDropout dropout;
  HeadRows<const T> dout, q, k, v, out;
  PairRows<const T> bias;
  HeadRows<T> dq, dk, dv;
  PairRows<float> dbias;
  const float* lse;
  int64_t lse_stride;
};

// The most of one problem below, and the places it weighs at a time.
constexpr int64_t kDecodeHeads = 16, kDecodePlaces = 64;

// Query heads of one new token that share a kv head, against the cached keys and values of that
// head (ops::DecodeAttention): place p of the cache begins at p * place_stride.
template <class T>
struct DecodeProblem {
  int64_t heads, head_dim;
  float scale;
  const T* q;
  int64_t q_head_stride;
  const T *keys, *values;
  int64_t place_stride;
  const int32_t* pages;
  int64_t page;
  int64_t first, length;  // tokens [first, length) are seen
  const T* bias;          // of token 0; null: none
  int64_t bias_head_stride;
  T* out;
  int64_t out_head_stride;
};

// Workspace that is handed out from the front, aligned to 64 bytes.
struct TileMemory {
  float* next;
};

// What one thread's tiles need, for any head_dim up to kMaxHeadDim.
size_t attention_workspace_bytes();

}  // namespace bev::cpu
