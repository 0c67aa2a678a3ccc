// How the blocks of the pass that computes the gradient of attention's bias share the work.
#pragma once

#include "ops/cuda/attention/attention_problem.cuh"
#include "ops/cuda/gpu.h"

namespace bev::cuda {

// Each tile of dbias has `splits` blocks, of which each takes its share of the sequences.
struct BiasGradient {
  BiasRows<float> dbias;
  int heads, query_tiles, key_tiles, splits;

  int64_t blocks() const { return int64_t{splits} * heads * query_tiles * key_tiles; }
  __device__ __forceinline__ void add(float* to, float value) const {
    if (splits == 1) {
      *to += value;
    } else {
      atomicAdd(to, value);
    }
  }
};

// One block for each tile if sums must have a fixed order; else enough to fill the GPU.
inline BiasGradient bias_gradient(Exec& ex, const ops::AttentionBackward& a, int64_t queries,
                                  int64_t keys) {
  const int64_t query_tiles = ceil_div(a.dbias.shape[1], queries);
  const int64_t key_tiles = ceil_div(a.dbias.shape[2], keys);
  const int64_t heads = a.dbias.shape[0];
  const int64_t tiles = std::max<int64_t>(1, heads * query_tiles * key_tiles);
  const int64_t wanted = ceil_div(int64_t{8} * gpu_of(ex).multiprocessors(), tiles);
  const bool in_order = ex.device.policy().deterministic;
  return {.dbias = bias_rows<float>(a.dbias),
          .heads = static_cast<int>(heads),
          .query_tiles = static_cast<int>(query_tiles),
          .key_tiles = static_cast<int>(key_tiles),
          .splits = in_order ? 1 : static_cast<int>(std::clamp<int64_t>(wanted, 1, a.sequences))};
}

// The tile and the sequences of a block.
struct BiasGradientPlace {
  int head, query0, query_end, key0, key_end, first_sequence;

  __device__ __forceinline__ BiasGradientPlace(const AttentionProblem& p, const BiasGradient& g,
                                               int queries, int keys) {
    int rest = static_cast<int>(blockIdx.x);
    key0 = rest % g.key_tiles * keys;
    rest /= g.key_tiles;
    query0 = rest % g.query_tiles * queries;
    rest /= g.query_tiles;
    head = rest % g.heads;
    first_sequence = rest / g.heads;
    query_end = min(query0 + queries, p.queries);
    key_end = min(key0 + keys, p.keys);
  }

  // The first sequence of the block, from `sequence` on, in which a query may see a key of the
  // tile. All lanes of a warp call it together.
  __device__ __forceinline__ int next(const AttentionProblem& p, const BiasGradient& g,
                                      int sequence) const {
    for (; sequence < p.sequences; sequence += g.splits) {
      const Interval seen = p.interval_of_tile(sequence, query0, query_end);
      if (max(seen.begin, key0) < min(seen.end, key_end)) break;
    }
    return sequence;
  }
};

}  // namespace bev::cuda
