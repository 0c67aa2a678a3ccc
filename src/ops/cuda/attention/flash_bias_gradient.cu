// The gradient of attention's bias: dS summed over the sequences, which share the bias. A block
// owns a tile of queries and keys of one head, walks over the sequences and recomputes their
// scores, so that the sums stay in registers. The kernels of dq, dk and dv own a sequence each and
// would have to add every dS to device memory.
#include "ops/cuda/attention/attention_dropout.cuh"
#include "ops/cuda/attention/attention_problem.cuh"
#include "ops/cuda/attention/bias_gradient_place.cuh"
#include "ops/cuda/attention/flash_attention.h"
#include "ops/cuda/attention/flash_dkdv_pass.cuh"
#include "ops/cuda/attention/flash_tiles.cuh"
#include "ops/cuda/attention/shared_tile.cuh"
#include "ops/cuda/primitives/launch_kernel.cuh"

namespace bev::cuda {

namespace {

// D: columns of the tiles, at least head_dim.
template <int D>
struct BiasPass {
  static constexpr int kWarps = 4, kThreads = 32 * kWarps;
  // Groups of 16 queries per warp, which reads keys and values once for all of them.
  static constexpr int kGroups = D == 256 ? 1 : 2;
  static constexpr int kOwnQueries = 16 * kGroups, kQueries = kOwnQueries * kWarps;
  static constexpr int kKeys = D == 256 ? 32 : 64;
  static constexpr int kScored = 32;  // keys whose scores are in registers at a time
  static constexpr int kBlocksPerProcessor = 2;
  static constexpr int kStages = D == 64 ? 2 : 1;
  // A stage: queries, their gradients, keys, values.
  static constexpr int kQueryBytes = kQueries * D * 2, kKeyBytes = kKeys * D * 2;
  static constexpr int kStageBytes = 2 * kQueryBytes + 2 * kKeyBytes;
  static constexpr int kSharedBytes = kStages * kStageBytes;
};

template <class T, int D>
__global__ void __launch_bounds__(BiasPass<D>::kThreads, BiasPass<D>::kBlocksPerProcessor)
    flash_bias_kernel(const __grid_constant__ BackwardArgs<T> a,
                      const __grid_constant__ BiasGradient gradient) {
  using Size = BiasPass<D>;
  constexpr int kKeys = Size::kKeys, kTiles = Size::kScored / 8, kGroups = Size::kGroups;
  constexpr int kSteps = kKeys / Size::kScored;
  using KeyTile = SharedTile<T, kKeys, D>;
  using QueryTile = SharedTile<T, Size::kQueries, D>;
  extern __shared__ __align__(128) unsigned char shared_memory[];
  const AttentionProblem& p = a.p;
  const int lane = static_cast<int>(threadIdx.x % 32), warp = uniform_warp();
  const int t = lane % 4;

  const BiasGradientPlace at(p, gradient, Size::kQueries, kKeys);
  const int head = at.head, query0 = at.query0, key0 = at.key0;
  const int own_row = warp * Size::kOwnQueries;  // of the tile
  const int kv_head = head / (p.heads / p.kv_heads);

  const auto stage = [&](int n) { return shared_memory + n % Size::kStages * Size::kStageBytes; };
  const auto load = [&](int n, int sequence) {
    unsigned char* const to = stage(n);
    const int64_t first_query = static_cast<int64_t>(sequence) * p.queries + query0;
    const int64_t first_key = static_cast<int64_t>(sequence) * p.keys + key0;
    const auto queries = [&](const HeadRows<const T>& from, int offset) {
      QueryTile{to + offset}.template load<Size::kThreads>(from.at(first_query, head), from.token,
                                                           p.queries - query0, p.head_dim, a.wide);
    };
    const auto keys = [&](const HeadRows<const T>& from, int offset) {
      KeyTile{to + offset}.template load<Size::kThreads>(from.at(first_key, kv_head), from.token,
                                                         p.keys - key0, p.head_dim, a.wide);
    };
    queries(a.q, 0);
    queries(a.dout, Size::kQueryBytes);
    keys(a.k, 2 * Size::kQueryBytes);
    keys(a.v, 2 * Size::kQueryBytes + Size::kKeyBytes);
  };

  int sequence = at.next(p, gradient, at.first_sequence);
  if (sequence >= p.sequences) return;
  if (Size::kStages == 2) load(0, sequence);
  BiasOfQueries<T, kTiles> bias[kGroups][kSteps];
  float sum[kGroups][kSteps][kTiles][4] = {};
#pragma unroll
  for (int of = 0; of < kGroups; ++of) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      bias[of][step].load(p, a.bias, a.bias_pairs, head, query0 + own_row + of * 16,
                          key0 + step * Size::kScored, lane);
    }
  }

  const float scale = p.scale * kLog2E;
  const float keep = p.drops ? p.keep_factor : 1.0f;
  for (int n = 0; sequence < p.sequences; ++n) {
    const int now = sequence;
    sequence = at.next(p, gradient, now + gradient.splits);
    if constexpr (Size::kStages == 1) {
      __syncthreads();  // Every warp is done with the tiles.
      load(0, now);
    }
    wait_for_copies();
    __syncthreads();  // Also: every warp is done with the other stage.
    if (Size::kStages == 2 && sequence < p.sequences) load(n + 1, sequence);

    unsigned char* const tiles = stage(n);
    const KeyTile keys{tiles + 2 * Size::kQueryBytes}, values{keys.base + Size::kKeyBytes};
    LeftRows<QueryTile, D, false> queries[kGroups], gradients[kGroups];
    SoftmaxDelta sums[kGroups][2];
    bool sees_all[kGroups];
#pragma unroll
    for (int of = 0; of < kGroups; ++of) {
      queries[of].tile = QueryTile{tiles};
      gradients[of].tile = QueryTile{tiles + Size::kQueryBytes};
      queries[of].row = gradients[of].row = own_row + of * 16;
      sees_all[of] = WarpRows(p, now, query0 + own_row + of * 16, lane).sees_all(key0, kKeys);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int i = query0 + own_row + of * 16 + lane / 4 + 8 * half;
        sums[of][half] = {INFINITY, 0};
        if (i < p.queries) {
          sums[of][half] = a.rows[(static_cast<int64_t>(now) * p.heads + head) * p.queries + i];
        }
      }
    }
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const int first_key = key0 + step * Size::kScored;
      float s[kGroups][kTiles][4] = {}, dp[kGroups][kTiles][4] = {};
      add_products_of_rows<T, D>(s, queries, keys, step * Size::kScored, lane);
      add_products_of_rows<T, D>(dp, gradients, values, step * Size::kScored, lane);
#pragma unroll
      for (int of = 0; of < kGroups; ++of) {
        bias[of][step].add_to(s[of], 1 / p.scale);
        if (!sees_all[of]) {
          const WarpRows rows(p, now, query0 + own_row + of * 16, lane);
#pragma unroll
          for (int tile8 = 0; tile8 < kTiles; ++tile8) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
              const int key = first_key + tile8 * 8 + 2 * t + e % 2;
              if (!rows.sees(e / 2, key)) s[of][tile8][e] = -INFINITY;
            }
          }
        }
        if (p.drops) {
          const WarpRows rows(p, now, query0 + own_row + of * 16, lane);
          const auto dropped =
              DroppedKeys::draw<kTiles>(p, rows.dropout_row(p, now, lane), head, first_key, lane);
#pragma unroll
          for (int tile8 = 0; tile8 < kTiles; ++tile8) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
              if (dropped(tile8, e)) dp[of][tile8][e] = 0;
            }
          }
        }
#pragma unroll
        for (int tile8 = 0; tile8 < kTiles; ++tile8) {
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            const SoftmaxDelta& row = sums[of][e / 2];
            const float probability = fast_exp2(fmaf(s[of][tile8][e], scale, -row.lse2));
            float& total = sum[of][step][tile8][e];
            total = fmaf(probability, fmaf(dp[of][tile8][e], keep, -row.delta), total);
          }
        }
      }
    }
  }

#pragma unroll
  for (int of = 0; of < kGroups; ++of) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int i = query0 + own_row + of * 16 + lane / 4 + 8 * half;
      if (i >= p.queries) continue;
      float* const row = gradient.dbias.at(head, i);
#pragma unroll
      for (int e = 0; e < kKeys / 4; ++e) {
        const int tile8 = e / 2, key = key0 + tile8 * 8 + 2 * t + e % 2;
        if (key >= p.keys) continue;
        gradient.add(row + key, sum[of][tile8 / kTiles][tile8 % kTiles][2 * half + e % 2]);
      }
    }
  }
}

template <class T>
void add_with_tensor_cores(Exec& ex, const ops::AttentionBackward& a, const SoftmaxDelta* rows) {
  const BackwardArgs<T> args = backward_args<T>(a, rows);
  visit_tile(args.p.head_dim, false, [&]<int D, bool> {
    using Size = BiasPass<D>;
    const BiasGradient gradient = bias_gradient(ex, a, Size::kQueries, Size::kKeys);
    launch("attention_backward", flash_bias_kernel<T, D>, gradient.blocks(), Size::kThreads,
           Size::kSharedBytes, stream_of(ex), args, gradient);
  });
}

}  // namespace

void add_bias_gradient(Exec& ex, const ops::AttentionBackward& a, const SoftmaxDelta* rows) {
  if (!tensor_cores_serve(a.q, a.scale)) {
    simt_bias_gradient(ex, a, rows);
  } else if (a.q.dtype == DType::bf16) {
    add_with_tensor_cores<__nv_bfloat16>(ex, a, rows);
  } else {
    add_with_tensor_cores<__half>(ex, a, rows);
  }
}

}  // namespace bev::cuda
