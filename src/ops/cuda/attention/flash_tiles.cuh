// What the tensor-core kernels of attention share: the queries a warp owns and what they see, and
// how fragments leave the registers.
#pragma once

#include "ops/cuda/attention/attention_dispatch.h"
#include "ops/cuda/attention/attention_problem.cuh"
#include "ops/cuda/primitives/mma.cuh"

namespace bev::cuda {

// Calls f<columns of a tile, dropout>(). REQUIRES: head_dim <= kMaxTileColumns.
template <class F>
void visit_tile(int head_dim, bool dropout, F&& f) {
  const auto with = [&]<int D> {
    if (dropout) {
      f.template operator()<D, true>();
    } else {
      f.template operator()<D, false>();
    }
  };
  if (head_dim <= 64) {
    with.template operator()<64>();
  } else if (head_dim <= 128) {
    with.template operator()<128>();
  } else {
    with.template operator()<256>();
  }
}

// The warp's number, which the compiler then knows to be the same in all lanes: what follows from
// it takes no registers of theirs. All lanes call it together.
__device__ __forceinline__ int uniform_warp() {
  return __shfl_sync(kAllLanes, static_cast<int>(threadIdx.x / 32), 0);
}

// Which tile of which column (a head of a sequence) a block of a grid of tiles x columns owns. All
// tiles of some columns come before those of the next ones, so that what they share stays in the L2
// cache; among these columns tile 0 comes first.
struct BlockPlace {
  int tile, column;

  __device__ __forceinline__ explicit BlockPlace(int columns) {
    constexpr int kTogether = 256;  // blocks, of the order of those that run at a time
    const int block = static_cast<int>(blockIdx.x), tiles = static_cast<int>(gridDim.x) / columns;
    const int band = max(1, kTogether / tiles);
    const int first = block / (band * tiles) * band;
    const int width = min(band, columns - first);
    tile = (block - first * tiles) / width;
    column = first + (block - first * tiles) % width;
  }
};

// A block of the kernels in which a tile of queries of one head walks over tiles of keys. Size: has
// kQueries, kKeys and kThreads.
template <class Size>
struct QueryBlock {
  int sequence, head, kv_head, query0;
  int64_t first_query, first_key;  // of the tile and of the sequence, counted over all sequences

  // The last queries see most keys when causal: they start first.
  __device__ __forceinline__ explicit QueryBlock(const AttentionProblem& p) {
    const BlockPlace place(p.sequences * p.heads);
    const int tile = (p.queries - 1) / Size::kQueries - place.tile;
    sequence = place.column / p.heads;
    head = place.column % p.heads;
    kv_head = head / (p.heads / p.kv_heads);
    query0 = tile * Size::kQueries;
    first_query = static_cast<int64_t>(sequence) * p.queries + query0;
    first_key = static_cast<int64_t>(sequence) * p.keys;
  }

  // The keys that any of the queries sees, from the beginning of a tile on.
  __device__ __forceinline__ Interval keys(const AttentionProblem& p) const {
    Interval all = p.interval_of_tile(sequence, query0, min(query0 + Size::kQueries, p.queries));
    all.begin = all.begin / Size::kKeys * Size::kKeys;
    return all;
  }

  // Keys and values from key0 on, into a KeyTile each.
  template <class KeyTile, class Args>
  __device__ __forceinline__ void load_keys(const Args& a, int key0, unsigned char* to) const {
    const int rows = a.p.keys - key0;
    KeyTile{to}.template load<Size::kThreads>(a.k.at(first_key + key0, kv_head), a.k.token, rows,
                                              a.p.head_dim, a.wide);
    KeyTile{to + KeyTile::kBytes}.template load<Size::kThreads>(
        a.v.at(first_key + key0, kv_head), a.v.token, rows, a.p.head_dim, a.wide);
  }
};

// Rows g and g + 8 of a fragment of 16 queries. All lanes of a warp use it together.
struct WarpRows {
  int query[2];
  Interval interval[2];
  // Over all 16: the first key that one sees, the end; and where all see everything.
  Interval any, common;

  __device__ __forceinline__ WarpRows(const AttentionProblem& p, int sequence, int query0,
                                      int lane) {
    any = {p.keys, 0};
    common = {0, p.keys};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      query[half] = query0 + lane / 4 + 8 * half;
      interval[half] = {0, p.keys};  // Rows after the last query hold zeros and are not written.
      if (query[half] >= p.queries) continue;
      const Interval one = interval[half] = p.interval(sequence, query[half]);
      common = {max(common.begin, one.begin), min(common.end, one.end)};
      if (one.begin < one.end) any = {min(any.begin, one.begin), max(any.end, one.end)};
    }
    any.begin = __reduce_min_sync(kAllLanes, any.begin);
    any.end = __reduce_max_sync(kAllLanes, any.end);
    common.begin = __reduce_max_sync(kAllLanes, common.begin);
    common.end = __reduce_min_sync(kAllLanes, common.end);
  }

  __device__ __forceinline__ bool sees_nothing(int key0, int keys) const {
    return key0 >= any.end || key0 + keys <= any.begin;
  }
  __device__ __forceinline__ bool sees_all(int key0, int keys) const {
    return key0 >= common.begin && key0 + keys <= common.end;
  }
  __device__ __forceinline__ bool sees(int half, int key) const {
    return key >= interval[half].begin && key < interval[half].end;
  }

  // The logical row that DroppedKeys::draw wants of this lane.
  __device__ __forceinline__ uint64_t dropout_row(const AttentionProblem& p, int sequence,
                                                  int lane) const {
    const int i = min(lane % 2 == 0 ? query[0] : query[1], p.queries - 1);
    return static_cast<uint64_t>(p.dropout_rows[static_cast<int64_t>(sequence) * p.queries + i]);
  }
};

// Elements key and key + 1 of a row; those from `keys` on are 0.
template <class T>
__device__ __forceinline__ uint32_t load_pair(const T* row, int key, int keys) {
  const auto bits = [&](int k) -> uint32_t {
    return k < keys ? reinterpret_cast<const uint16_t*>(row)[k] : uint16_t{0};
  };
  return bits(key) | bits(key + 1) << 16;
}

// The bias of scores, as packed pairs of adjacent keys. It is loaded before a product whose time
// hides the wait, and added after it.

// Of fragments C[query][key] of 16 queries: kTiles of 8 keys from key0, a multiple of 8.
template <class T, int kTiles>
struct BiasOfQueries {
  uint32_t words[kTiles][2];

  // REQUIRES: bias.data is not null. `pairs`: has_paired_rows(bias).
  __device__ __forceinline__ void load(const AttentionProblem& p, const BiasRows<const T>& bias,
                                       bool pairs, int head, int query0, int key0, int lane) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      // Rows after the last query are not written.
      const T* row = bias.at(head, min(query0 + lane / 4 + 8 * half, p.queries - 1));
      const int key = key0 + lane % 4 * 2;
      if (pairs && key0 + kTiles * 8 <= p.keys) {
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
          words[tile][half] = __ldg(reinterpret_cast<const uint32_t*>(row + key + tile * 8));
        }
      } else {
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
          words[tile][half] = load_pair(row, key + tile * 8, p.keys);
        }
      }
    }
  }

  // s += factor * bias
  __device__ __forceinline__ void add_to(float (&s)[kTiles][4], float factor) const {
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        s[tile][e] = fmaf(unpacked<T>(words[tile][e / 2], e % 2), factor, s[tile][e]);
      }
    }
  }
};

// Of fragments C[key][query] of 8 kDown keys from key0 and kTiles of 8 queries: loaded as above,
// 8 x 8 at a time, and transposed among the lanes when added.
template <class T, int kDown, int kTiles>
struct BiasOfKeys {
  uint32_t words[kDown][kTiles];

  __device__ __forceinline__ void load(const AttentionProblem& p, const BiasRows<const T>& bias,
                                       bool pairs, int head, int query0, int key0, int lane) {
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      // Rows after the last query take part, with gradients of 0: they need something finite.
      const int query = query0 + tile * 8 + lane / 4;
      const int keys = query < p.queries ? p.keys : 0;
      const T* row = bias.at(head, min(query, p.queries - 1));
      const int key = key0 + lane % 4 * 2;
      if (pairs && key0 + kDown * 8 <= p.keys) {
#pragma unroll
        for (int down = 0; down < kDown; ++down) {
          const auto* pair = reinterpret_cast<const uint32_t*>(row + key + down * 8);
          words[down][tile] = keys > 0 ? __ldg(pair) : 0;
        }
      } else {
#pragma unroll
        for (int down = 0; down < kDown; ++down) {
          words[down][tile] = load_pair(row, key + down * 8, keys);
        }
      }
    }
  }

  __device__ __forceinline__ void add_to(float (&s)[kDown / 2][kTiles][4], float factor) const {
#pragma unroll
    for (int down = 0; down < kDown; ++down) {
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        const uint32_t word = transposed(words[down][tile]);
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& score = s[down / 2][tile][down % 2 * 2 + e];
          score = fmaf(unpacked<T>(word, e), factor, score);
        }
      }
    }
  }
};

// Whether elements 2 n and 2 n + 1 of every row share an aligned 4-byte word.
inline bool has_paired_rows(const ConstTensor& t) {
  return reinterpret_cast<uintptr_t>(t.data) % 4 == 0 && t.stride[0] % 2 == 0 &&
         t.stride[1] % 2 == 0;
}

// Elements column and column + 1 of a row; those from head_dim on are left out. column is even.
template <class T>
__device__ __forceinline__ void store_pair(T* row, int column, int head_dim, bool pairs,
                                           float first, float second) {
  if (pairs && column + 1 < head_dim) {
    *reinterpret_cast<uint32_t*>(row + column) = packed<T>(first, second);
  } else {
    if (column < head_dim) row[column] = from_float<T>(first);
    if (column + 1 < head_dim) row[column + 1] = from_float<T>(second);
  }
}

}  // namespace bev::cuda
