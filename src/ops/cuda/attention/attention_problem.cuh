// What the attention kernels are told: sizes, which keys a query sees, dropout, strided operands.
// Indices within one sequence are 32 bits wide, offsets into tensors 64.
#pragma once

#include <algorithm>
#include <type_traits>

#include "base/philox.h"
#include "ops/attention.h"
#include "ops/attention_dropout.h"
#include "ops/cuda/attention/attention_dispatch.h"
#include "ops/cuda/primitives/element_types.cuh"

namespace bev::cuda {

constexpr float kLog2E = 1.4426950408889634f;

// [tokens, heads, head_dim] with adjacent elements; strides in elements.
template <class T>
struct HeadRows {
  T* data;
  int64_t token, head;

  __device__ __forceinline__ T* at(int64_t row, int64_t h) const {
    return data + row * token + h * head;
  }
};

template <class T>
HeadRows<const T> head_rows(const ConstTensor& t) {
  return {data_of<T>(t), t.stride[0], t.stride[1]};
}
template <class T>
HeadRows<T> head_rows(const Tensor& t) {
  return {data_of<T>(t), t.stride[0], t.stride[1]};
}

// [heads, queries, keys] with adjacent elements, the same for all sequences, or null; strides in
// elements.
template <class T>
struct BiasRows {
  T* data = nullptr;
  int64_t head = 0, query = 0;

  __device__ __forceinline__ T* at(int h, int i) const { return data + h * head + i * query; }
};

template <class T, class View>
BiasRows<T> bias_rows(const View& t) {
  if (!t.present()) return {};
  return {data_of<std::remove_const_t<T>>(t), t.stride[0], t.stride[1]};
}

// The keys or queries [begin, end) of a sequence.
struct Interval {
  int begin, end;
};

struct AttentionProblem {
  int sequences, queries, keys;  // queries and keys of one sequence
  int heads, kv_heads, head_dim;
  float scale;
  bool causal;
  int window, offset;
  const int32_t *document_start, *query_lengths, *key_lengths;  // null: absent
  bool drops;
  // The following say something only when it does.
  PhiloxRounds<ops::kAttentionRounds> dropout_rounds;
  const int64_t* dropout_rows;
  uint32_t dropout_complement;  // a kept draw, shifted to the top of a word, overflows with it
  uint32_t dropout_head;
  float keep_factor, kept_share;  // of what is kept, and its inverse

  // Queries and keys of a sequence before its padding.
  __device__ __forceinline__ int query_end(int sequence) const {
    return query_lengths == nullptr ? queries : min(queries, query_lengths[sequence]);
  }
  __device__ __forceinline__ int key_end(int sequence) const {
    return key_lengths == nullptr ? keys : min(keys, key_lengths[sequence]);
  }

  // The keys that query i of a sequence sees. Empty when begin >= end.
  __device__ __forceinline__ Interval interval(int sequence, int i) const {
    if (i >= query_end(sequence)) return {0, 0};
    const int position = i + offset;
    Interval keys_of{0, key_end(sequence)};
    if (window > 0) keys_of.begin = max(0, position - window + 1);
    if (document_start != nullptr) {
      keys_of.begin =
          max(keys_of.begin, document_start[static_cast<int64_t>(sequence) * queries + i]);
    }
    if (causal) keys_of.end = min(keys_of.end, position + 1);
    return keys_of;
  }

  // Keys that at least one of the queries [begin, end) sees lie in the result. All lanes of a warp
  // call it together. REQUIRES: begin < end <= queries.
  __device__ __forceinline__ Interval interval_of_tile(int sequence, int begin, int end) const {
    Interval all{keys, 0};
    end = min(end, query_end(sequence));
    if (begin >= end) return {0, 0};
    if (document_start == nullptr) {
      // Both ends grow with the query.
      all = {interval(sequence, begin).begin, interval(sequence, end - 1).end};
    } else {
      for (int i = begin + static_cast<int>(threadIdx.x % 32); i < end; i += 32) {
        const Interval one = interval(sequence, i);
        if (one.begin >= one.end) continue;
        all = {min(all.begin, one.begin), max(all.end, one.end)};
      }
      all.begin = __reduce_min_sync(kAllLanes, all.begin);
      all.end = __reduce_max_sync(kAllLanes, all.end);
    }
    return {max(all.begin, 0), all.end};
  }

  // The queries that may see one of the keys [key0, key1); every thread of the block gets it.
  // `shared`: 2 ints per warp.
  template <int kWarps>
  __device__ __forceinline__ Interval queries_that_see(int sequence, int key0, int key1,
                                                       int* shared) const {
    if (key0 >= key_end(sequence)) return {0, 0};
    Interval range{0, query_end(sequence)};
    if (causal) range.begin = max(0, key0 - offset);
    if (window > 0) range.end = min(range.end, key1 - 1 + window - offset);
    if (document_start == nullptr) return range;
    const int32_t* first_key = document_start + static_cast<int64_t>(sequence) * queries;
    Interval seen{queries, 0};
    for (int i = range.begin + static_cast<int>(threadIdx.x); i < range.end; i += 32 * kWarps) {
      if (first_key[i] < key1) seen = {min(seen.begin, i), i + 1};
    }
    seen.begin = __reduce_min_sync(kAllLanes, seen.begin);
    seen.end = __reduce_max_sync(kAllLanes, seen.end);
    const int warp = static_cast<int>(threadIdx.x / 32);
    if (threadIdx.x % 32 == 0) {
      shared[2 * warp] = seen.begin;
      shared[2 * warp + 1] = seen.end;
    }
    __syncthreads();
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      seen = {min(seen.begin, shared[2 * w]), max(seen.end, shared[2 * w + 1])};
    }
    __syncthreads();  // The memory may be used again.
    return seen;
  }
};

template <class Args>
AttentionProblem problem_of(const Args& a) {
  const int64_t queries = a.q.shape[0] / a.sequences, keys = a.k.shape[0] / a.sequences;
  const int64_t offset = a.mask.query_offset;
  check_attention_size(queries, keys, offset);
  const auto& dropout = a.dropout;
  const uint32_t threshold = ops::attention_threshold(dropout.probability);
  return {.sequences = static_cast<int>(a.sequences),
          .queries = static_cast<int>(queries),
          .keys = static_cast<int>(keys),
          .heads = static_cast<int>(a.q.shape[1]),
          .kv_heads = static_cast<int>(a.k.shape[1]),
          .head_dim = static_cast<int>(a.q.shape[2]),
          .scale = static_cast<float>(a.scale),
          .causal = a.mask.causal,
          .window = static_cast<int>(std::min(a.mask.window, 2 * kAttentionLimit)),
          .offset = static_cast<int>(offset),
          .document_start = data_of<int32_t>(a.mask.document_start),
          .query_lengths = data_of<int32_t>(a.mask.query_lengths),
          .key_lengths = data_of<int32_t>(a.mask.key_lengths),
          .drops = threshold > 0,
          .dropout_rounds = philox_rounds<ops::kAttentionRounds>(dropout.key),
          .dropout_rows = data_of<int64_t>(dropout.rows),
          .dropout_complement = 0 - (threshold << 16),
          .dropout_head = static_cast<uint32_t>(dropout.head_begin),
          .keep_factor = static_cast<float>(ops::attention_keep_factor(dropout.probability)),
          .kept_share = static_cast<float>(1 / ops::attention_keep_factor(dropout.probability))};
}

// Whether every row starts at a multiple of 16 bytes and is a number of them long.
inline bool has_wide_rows(const ConstTensor& t) {
  const auto wide = static_cast<int64_t>(16 / size_of(t.dtype));
  return reinterpret_cast<uintptr_t>(t.data) % 16 == 0 && t.stride[0] % wide == 0 &&
         t.stride[1] % wide == 0 && t.shape[2] % wide == 0;
}

}  // namespace bev::cuda
