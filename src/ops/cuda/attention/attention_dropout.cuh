// Which probabilities of a score fragment are dropped. A block of Philox serves eight adjacent keys
// of one query (attention_dropout.h); the lanes that hold them share the blocks of their fragments
// and exchange bits, so that a warp draws nothing twice.
#pragma once

#include "ops/cuda/attention/attention_problem.cuh"

namespace bev::cuda {

// The same value, from which the compiler computes anew what it would otherwise keep across a loop:
// the kernels have no registers to spare.
__device__ __forceinline__ int afresh(int value) {
  asm volatile("" : "+r"(value));
  return value;
}
__device__ __forceinline__ uint64_t afresh(uint64_t value) {
  asm volatile("" : "+l"(value));
  return value;
}

// bits = 2 * bits + (a + b overflows): two instructions, and neither is a comparison, a selection
// or a shift, which share one pipe.
__device__ __forceinline__ void append_overflow(uint32_t& bits, uint32_t a, uint32_t b) {
  asm("{\n"
      ".reg .u32 sum;\n"
      "add.cc.u32 sum, %1, %2;\n"
      "addc.u32 %0, %0, %0;\n"
      "}"
      : "+r"(bits)
      : "r"(a), "r"(b));
}

// Shifts eight bits into `kept`, of which bit k % 8 says whether key k of the block is kept.
__device__ __forceinline__ void append_block(uint32_t& kept, const AttentionProblem& p,
                                             uint64_t row, int head, uint32_t block) {
  const uint64_t drawn_head = p.dropout_head + static_cast<uint32_t>(head);
  const PhiloxBlock words = philox(p.dropout_rounds, row, drawn_head << 32 | block);
#pragma unroll
  for (int w = 3; w >= 0; --w) {
    append_overflow(kept, words[w], p.dropout_complement);
    append_overflow(kept, words[w] << 16, p.dropout_complement);
  }
}

__device__ __forceinline__ bool is_dropped(const AttentionProblem& p, uint64_t row, int head,
                                           int key) {
  uint32_t kept = 0;
  append_block(kept, p, row, head, static_cast<uint32_t>(key) / ops::kKeysPerBlock);
  return (kept >> (key % ops::kKeysPerBlock) & 1) == 0;
}

// One step of transposing a matrix of bits: lanes l and l + kLanes exchange bits i + kBits of the
// first for bits i of the second. All lanes of a warp call it together.
template <int kLanes, int kBits>
__device__ __forceinline__ uint32_t exchange_bits(uint32_t bits, int lane) {
  constexpr uint32_t kLow = 0xFFFFFFFF / ((1u << kBits) + 1);  // bits i: those without kBits in i
  const bool upper = (afresh(lane) & kLanes) != 0;
  const uint32_t own = upper ? ~kLow : kLow;
  const uint32_t other = __shfl_xor_sync(kAllLanes, bits, kLanes);
  return (bits & own) | (__funnelshift_l(other, other, upper ? 32 - kBits : kBits) & ~own);
}

// Of fragments C[query][key]: kTiles of 8 keys from key0, a multiple of 8.
struct DroppedKeys {
  uint32_t kept;  // bit 4 * tile + e: element e of the fragment of a tile

  // `row`: the logical row of query g where t is even, of query g + 8 where t is odd.
  template <int kTiles>
  __device__ __forceinline__ static DroppedKeys draw(const AttentionProblem& p, uint64_t row,
                                                     int head, int key0, int lane) {
    static_assert(kTiles <= 8 && kTiles % 2 == 0);
    // Of the four lanes of a row the first two draw the even tiles, the others the odd ones.
    const uint32_t block = static_cast<uint32_t>(key0) / 8 + static_cast<uint32_t>(lane % 4 / 2);
    row = afresh(row);
    uint32_t kept = 0;
#pragma unroll
    for (int tile = kTiles - 2; tile >= 0; tile -= 2) {
      append_block(kept, p, row, head, block + static_cast<uint32_t>(tile));
    }
    // Bit 4 * tile + 2 * word + half in place of the lane that holds the keys of that word.
    return {exchange_bits<2, 4>(exchange_bits<1, 2>(kept, lane), lane)};
  }
  __device__ __forceinline__ bool operator()(int tile, int e) const {
    return (kept >> (4 * tile + e) & 1) == 0;
  }
};

// Of fragments C[key][query]: 16 keys from key0, a multiple of 8; four tiles of 8 queries.
struct DroppedQueries {
  uint32_t kept;  // bit 8 * (e / 2) + 2 * tile + e % 2: element e of the fragment of a tile

  // `rows`: the logical rows of the queries.
  __device__ __forceinline__ static DroppedQueries draw(const AttentionProblem& p,
                                                        const int64_t* rows, int head, int key0,
                                                        int lane) {
    // The eight lanes of a column pair draw one query each: g is its tile and the column.
    const int g = lane / 4, t = lane % 4;
    const auto row = static_cast<uint64_t>(rows[g / 2 * 8 + 2 * t + g % 2]);
    const uint32_t block = static_cast<uint32_t>(key0) / 8;
    uint32_t kept = 0;
    append_block(kept, p, row, head, block + 1);
    append_block(kept, p, row, head, block);
    kept = exchange_bits<4, 1>(kept, lane);
    kept = exchange_bits<8, 2>(kept, lane);
    return {exchange_bits<16, 4>(kept, lane)};
  }
  __device__ __forceinline__ bool operator()(int tile, int e) const {
    return (kept >> (8 * (e / 2) + 2 * tile + e % 2) & 1) == 0;
  }
};

}  // namespace bev::cuda
