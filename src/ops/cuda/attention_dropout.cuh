// Which probabilities of a score fragment are dropped. A block of Philox serves four adjacent keys
// of one query; the lanes that hold them draw one block each and exchange bits, so that nothing is
// drawn twice.
#pragma once

#include "ops/cuda/attention_problem.cuh"

namespace bev::cuda {

// Bit w: the draw for key 4 * block + w is dropped.
__device__ __forceinline__ uint32_t dropped_of_block(const AttentionProblem& p, uint64_t row,
                                                     uint32_t head, uint32_t block) {
  const PhiloxBlock draws =
      philox(p.dropout_rounds, row, static_cast<uint64_t>(p.dropout_head + head) << 32 | block);
  uint32_t bits = 0;
#pragma unroll
  for (int w = 0; w < 4; ++w) bits |= (draws[w] < p.dropout_below ? 1u : 0u) << w;
  return bits;
}

__device__ __forceinline__ bool is_dropped(const AttentionProblem& p, uint64_t row, uint32_t head,
                                           int key) {
  return dropped_of_block(p, row, head, static_cast<uint32_t>(key) / 4) >> (key % 4) & 1;
}

// Of fragments C[query][key]: kTiles of 8 keys from key0, a multiple of 8.
struct DroppedKeys {
  uint32_t bits[2];  // of row g and of row g + 8: bit 4 * tile + column

  // `row`: the logical row of query g where t is even, of query g + 8 where t is odd.
  template <int kTiles>
  __device__ __forceinline__ static DroppedKeys draw(const AttentionProblem& p, uint64_t row,
                                                     int head, int key0, int lane) {
    static_assert(kTiles <= 8);
    const uint32_t block = static_cast<uint32_t>(key0) / 4 + static_cast<uint32_t>(lane % 4 / 2);
    uint32_t mine = 0;
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      mine |= dropped_of_block(p, row, static_cast<uint32_t>(head),
                               block + 2 * static_cast<uint32_t>(tile))
              << (4 * tile);
    }
    const uint32_t other = __shfl_xor_sync(kAllLanes, mine, 1);
    return lane % 2 == 0 ? DroppedKeys{{mine, other}} : DroppedKeys{{other >> 2, mine >> 2}};
  }
  // Of element e of the fragment of a tile.
  __device__ __forceinline__ bool operator()(int tile, int e) const {
    return bits[e / 2] >> (4 * tile + e % 2) & 1;
  }
};

// Of fragments C[key][query]: 16 keys from key0, a multiple of 8; kTiles of 8 queries.
struct DroppedQueries {
  uint32_t bits[4];  // of element e: bit 4 * tile

  // `rows`: the logical rows of the queries.
  template <int kTiles>
  __device__ __forceinline__ static DroppedQueries draw(const AttentionProblem& p,
                                                        const int64_t* rows, int head, int key0,
                                                        int lane) {
    static_assert(kTiles <= 8);
    const int g = lane / 4, t = lane % 4;
    // The four lanes that hold keys 4 m to 4 m + 3 of a column pair draw one element index each.
    const int e = g % 4;
    const uint32_t block =
        static_cast<uint32_t>(key0 + e / 2 * 8) / 4 + static_cast<uint32_t>(g / 4);
    uint32_t mine = 0;
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      const auto row = static_cast<uint64_t>(rows[tile * 8 + 2 * t + e % 2]);
      mine |= dropped_of_block(p, row, static_cast<uint32_t>(head), block) << (4 * tile);
    }
    DroppedQueries all;
#pragma unroll
    for (int from = 0; from < 4; ++from) {
      all.bits[from] = __shfl_sync(kAllLanes, mine, (lane & ~12) | from << 2) >> e;
    }
    return all;
  }
  __device__ __forceinline__ bool operator()(int tile, int e) const {
    return bits[e] >> (4 * tile) & 1;
  }
};

}  // namespace bev::cuda
