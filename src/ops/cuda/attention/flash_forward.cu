// Attention forward on tensor cores (Dao, "FlashAttention-2", 2023): a block owns a tile of queries
// of one head and walks over tiles of keys with a running maximum and sum.
#include "ops/cuda/attention/attention_dropout.cuh"
#include "ops/cuda/attention/attention_problem.cuh"
#include "ops/cuda/attention/flash_attention.h"
#include "ops/cuda/attention/flash_tiles.cuh"
#include "ops/cuda/attention/shared_tile.cuh"
#include "ops/cuda/primitives/launch_kernel.cuh"

namespace bev::cuda {

namespace {

template <class T>
struct ForwardArgs {
  AttentionProblem p;
  HeadRows<const T> q, k, v;
  BiasRows<const T> bias;
  HeadRows<T> out;
  float* lse;
  int64_t lse_sequence, lse_head;
  bool wide, pairs, bias_pairs;  // q, k and v have wide rows; out and bias are accessed in pairs
};

// D: columns of the tiles, at least head_dim. Each warp owns 16 queries.
template <int D>
struct ForwardShape {
  static constexpr int kWarps = D == 64 ? 8 : 4;
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kQueries = 16 * kWarps;
  static constexpr int kKeys = D == 256 ? 32 : 64;
  static constexpr int kBlocksPerProcessor = D == 64 ? 2 : D == 128 ? 3 : 2;
  // The queries stay in registers, and their tile then makes room for keys and values.
  static constexpr bool kHold = D <= 128;
  static constexpr int kStageBytes = 2 * kKeys * D * 2;
  static constexpr int kQueryBytes = kQueries * D * 2;
  static constexpr int kSharedBytes = 2 * kStageBytes + (kHold ? 0 : kQueryBytes);
  static_assert(!kHold || kQueryBytes <= kStageBytes);
};

template <class T, int D, bool kDropout, bool kBias>
__global__ void __launch_bounds__(ForwardShape<D>::kThreads, ForwardShape<D>::kBlocksPerProcessor)
    flash_forward_kernel(const __grid_constant__ ForwardArgs<T> a) {
  using Size = ForwardShape<D>;
  constexpr int kKeys = Size::kKeys, kTiles = kKeys / 8;
  using KeyTile = SharedTile<T, kKeys, D>;
  using QueryTile = SharedTile<T, Size::kQueries, D>;
  extern __shared__ __align__(128) unsigned char shared_memory[];
  const AttentionProblem& p = a.p;
  const int lane = static_cast<int>(threadIdx.x % 32), warp = uniform_warp();
  const int t = lane % 4;

  const QueryBlock<Size> block(p);
  const int sequence = block.sequence, head = block.head, query0 = block.query0;

  const auto stage = [&](int n) { return shared_memory + n % 2 * Size::kStageBytes; };
  const auto load_keys = [&](int n, int key0) {
    block.template load_keys<KeyTile>(a, key0, stage(n));
  };

  const Interval all = block.keys(p);
  const QueryTile query_tile{Size::kHold ? stage(1) : shared_memory + 2 * Size::kStageBytes};
  query_tile.template load<Size::kThreads>(a.q.at(block.first_query, head), a.q.token,
                                           p.queries - query0, p.head_dim, a.wide);
  if (all.begin < all.end) load_keys(0, all.begin);

  const WarpRows rows(p, sequence, query0 + warp * 16, lane);
  uint64_t dropout_row = 0;
  if constexpr (kDropout) dropout_row = rows.dropout_row(p, sequence, lane);

  LeftRows<QueryTile, D, Size::kHold> queries{query_tile, warp * 16};
  if constexpr (Size::kHold) {
    wait_for_copies();
    __syncthreads();
    queries.hold(lane);
  }

  const float scale = p.scale * kLog2E;
  float o[D / 8][4] = {};
  float maximum[2] = {-INFINITY, -INFINITY}, sum[2] = {};
  for (int key0 = all.begin, n = 0; key0 < all.end; key0 += kKeys, ++n) {
    wait_for_copies();
    __syncthreads();  // Also: every warp is done with the other stage.
    if (key0 + kKeys < all.end) load_keys(n + 1, key0 + kKeys);
    if (rows.sees_nothing(key0, kKeys)) continue;
    const KeyTile keys{stage(n)}, values{stage(n) + KeyTile::kBytes};

    BiasOfQueries<T, kTiles> bias;
    if constexpr (kBias) {
      bias.load(p, a.bias, a.bias_pairs, head, query0 + warp * 16, key0, lane);
    }
    float s[kTiles][4] = {};
    add_product_of_rows<T, D>(s, queries, keys, lane);
    if constexpr (kBias) bias.add_to(s, 1 / p.scale);
    if (!rows.sees_all(key0, kKeys)) {
#pragma unroll
      for (int tile8 = 0; tile8 < kTiles; ++tile8) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int inside = tile8 * 8 + 2 * t + e % 2;
          if (!rows.sees(e / 2, key0 + inside)) s[tile8][e] = -INFINITY;
        }
      }
    }

    float shift[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float largest = maximum[half];
#pragma unroll
      for (int tile8 = 0; tile8 < kTiles; ++tile8) {
        largest = fmaxf(largest, fmaxf(s[tile8][2 * half], s[tile8][2 * half + 1]));
      }
      largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, 1));
      largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, 2));
      // Without any key so far everything stays 0.
      shift[half] = largest == -INFINITY ? 0 : largest * scale;
      const float correction = fast_exp2(maximum[half] * scale - shift[half]);
      maximum[half] = largest;
      sum[half] *= correction;
#pragma unroll
      for (int c = 0; c < D / 8; ++c) {
        o[c][2 * half] *= correction;
        o[c][2 * half + 1] *= correction;
      }
    }
#pragma unroll
    for (int tile8 = 0; tile8 < kTiles; ++tile8) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        s[tile8][e] = fast_exp2(fmaf(s[tile8][e], scale, -shift[e / 2]));
        sum[e / 2] += s[tile8][e];
      }
    }
    if constexpr (kDropout) {
      const auto dropped = DroppedKeys::draw<kTiles>(p, dropout_row, head, key0, lane);
#pragma unroll
      for (int tile8 = 0; tile8 < kTiles; ++tile8) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          if (dropped(tile8, e)) s[tile8][e] = 0;
        }
      }
    }

    add_product<T, D>(o, s, values, 0, lane);
  }

  wait_for_copies();  // There are some where no key is seen.
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float total = sum[half];
    total += __shfl_xor_sync(kAllLanes, total, 1);
    total += __shfl_xor_sync(kAllLanes, total, 2);
    const int i = rows.query[half];
    if (i >= p.queries) continue;
    const bool empty = total == 0;
    const float factor = empty ? 0 : (kDropout ? p.keep_factor : 1.0f) / total;
    if (t == 0) {
      a.lse[sequence * a.lse_sequence + head * a.lse_head + i] =
          empty ? -INFINITY : maximum[half] * p.scale + logf(total);
    }
    T* row = a.out.at(static_cast<int64_t>(sequence) * p.queries + i, head);
#pragma unroll
    for (int c = 0; c < D / 8; ++c) {
      store_pair(row, c * 8 + 2 * t, p.head_dim, a.pairs, o[c][2 * half] * factor,
                 o[c][2 * half + 1] * factor);
    }
  }
}

template <class T, int D, bool kDropout, bool kBias>
void launch_forward(Exec& ex, const ForwardArgs<T>& args) {
  using Size = ForwardShape<D>;
  const int64_t blocks = ceil_div(args.p.queries, Size::kQueries) * args.p.sequences * args.p.heads;
  launch("attention", flash_forward_kernel<T, D, kDropout, kBias>, blocks, Size::kThreads,
         Size::kSharedBytes, stream_of(ex), args);
}

template <class T>
void forward(Exec& ex, const ops::Attention& a) {
  const ForwardArgs<T> args{.p = problem_of(a),
                            .q = head_rows<T>(a.q),
                            .k = head_rows<T>(a.k),
                            .v = head_rows<T>(a.v),
                            .bias = bias_rows<const T>(a.bias),
                            .out = head_rows<T>(a.out),
                            .lse = data_of<float>(a.lse),
                            .lse_sequence = a.lse.stride[0],
                            .lse_head = a.lse.stride[1],
                            .wide = has_wide_rows(a.q) && has_wide_rows(a.k) && has_wide_rows(a.v),
                            .pairs = has_paired_rows(a.out),
                            .bias_pairs = has_paired_rows(a.bias)};
  visit_tile(args.p.head_dim, args.p.drops, [&]<int D, bool kDropout> {
    if (a.bias.present()) {
      launch_forward<T, D, kDropout, true>(ex, args);
    } else {
      launch_forward<T, D, kDropout, false>(ex, args);
    }
  });
}

}  // namespace

void flash_forward(Exec& ex, const ops::Attention& a, const Tensor&) {
  if (!tensor_cores_serve(a.q, a.scale)) {
    simt_forward(ex, a);
  } else if (a.q.dtype == DType::bf16) {
    forward<__nv_bfloat16>(ex, a);
  } else {
    forward<__half>(ex, a);
  }
}

}  // namespace bev::cuda
