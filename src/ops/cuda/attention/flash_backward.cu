// Attention backward on tensor cores, in two passes so that no sum depends on the order of blocks:
// one walks over queries for dk and dv, one over keys for dq. Both recompute P = exp(S - lse).
// Where the order may vary, flash_one_pass.cu serves instead.
#include "ops/cuda/attention/attention_dropout.cuh"
#include "ops/cuda/attention/flash_attention.h"
#include "ops/cuda/attention/flash_dkdv_pass.cuh"
#include "ops/cuda/attention/shared_tile.cuh"
#include "ops/cuda/primitives/launch_kernel.cuh"

namespace bev::cuda {

namespace {

constexpr int kDeltaThreads = 256, kDeltaLanes = 8;  // lanes per row

template <class T>
struct DeltaArgs {
  HeadRows<const T> out, dout;
  const float* lse;
  int64_t lse_sequence, lse_head;
  int64_t rows;
  int queries, heads, head_dim;
  bool wide;
  SoftmaxDelta* sums;
};

template <class T>
__device__ __forceinline__ float dot(uint4 a, uint4 b) {
  constexpr int kElements = 16 / sizeof(T);
  const T* x = reinterpret_cast<const T*>(&a);
  const T* y = reinterpret_cast<const T*>(&b);
  float sum = 0;
#pragma unroll
  for (int e = 0; e < kElements; ++e) sum += to_float(x[e]) * to_float(y[e]);
  return sum;
}

template <class T>
__global__ void __launch_bounds__(kDeltaThreads)
    query_sums_kernel(const __grid_constant__ DeltaArgs<T> a) {
  const int64_t row =
      static_cast<int64_t>(blockIdx.x) * (kDeltaThreads / kDeltaLanes) + threadIdx.x / kDeltaLanes;
  const int lane = static_cast<int>(threadIdx.x % kDeltaLanes);
  // Heads of one query follow each other, as they do in memory.
  const int head = static_cast<int>(row % a.heads);
  const int64_t query = row / a.heads;
  float sum = 0;
  if (row < a.rows) {
    const T* out = a.out.at(query, head);
    const T* dout = a.dout.at(query, head);
    if (a.wide) {
      constexpr int kElements = 16 / sizeof(T);
      for (int c = lane * kElements; c < a.head_dim; c += kDeltaLanes * kElements) {
        sum += dot<T>(*reinterpret_cast<const uint4*>(out + c),
                      *reinterpret_cast<const uint4*>(dout + c));
      }
    } else {
      for (int c = lane; c < a.head_dim; c += kDeltaLanes)
        sum += to_float(out[c]) * to_float(dout[c]);
    }
  }
#pragma unroll
  for (int offset = kDeltaLanes / 2; offset > 0; offset /= 2) {
    sum += __shfl_xor_sync(kAllLanes, sum, offset);
  }
  if (lane != 0 || row >= a.rows) return;
  const int64_t sequence = query / a.queries, inside = query % a.queries;
  const float lse = a.lse[sequence * a.lse_sequence + head * a.lse_head + inside];
  a.sums[(sequence * a.heads + head) * a.queries + inside] = {
      lse == -INFINITY ? INFINITY : lse * kLog2E, sum};
}

void compute_query_sums(Exec& ex, const ops::AttentionBackward& a, SoftmaxDelta* rows) {
  visit_cuda(a.q.dtype, "attention_backward", [&]<class T> {
    const DeltaArgs<T> args{.out = head_rows<T>(a.out),
                            .dout = head_rows<T>(a.dout),
                            .lse = data_of<float>(a.lse),
                            .lse_sequence = a.lse.stride[0],
                            .lse_head = a.lse.stride[1],
                            .rows = a.q.shape[0] * a.q.shape[1],
                            .queries = static_cast<int>(a.q.shape[0] / a.sequences),
                            .heads = static_cast<int>(a.q.shape[1]),
                            .head_dim = static_cast<int>(a.q.shape[2]),
                            .wide = has_wide_rows(a.out) && has_wide_rows(a.dout),
                            .sums = rows};
    launch("attention_backward", query_sums_kernel<T>,
           ceil_div(args.rows, kDeltaThreads / kDeltaLanes), kDeltaThreads, 0, stream_of(ex), args);
  });
}

template <int D>
struct QueryPass {
  static constexpr int kWarps = 4, kThreads = 32 * kWarps;
  static constexpr int kQueries = 16 * kWarps;
  static constexpr int kKeys = D == 256 ? 32 : 64;
  static constexpr int kBlocksPerProcessor = D == 64 ? 3 : 2;
  // Queries and their gradients stay in registers, and their tiles make room for keys and values.
  static constexpr bool kHold = D <= 128;
  static constexpr int kStages = D == 256 ? 1 : 2;
  static constexpr int kStageBytes = 2 * kKeys * D * 2;
  static constexpr int kQueryBytes = 2 * kQueries * D * 2;
  static constexpr int kSharedBytes = kStages * kStageBytes + (kHold ? 0 : kQueryBytes);
  static_assert(!kHold || (kStages == 2 && kQueryBytes <= kStageBytes));
};

template <class T, int D, bool kDropout>
__global__ void __launch_bounds__(QueryPass<D>::kThreads, QueryPass<D>::kBlocksPerProcessor)
    flash_dq_kernel(const __grid_constant__ BackwardArgs<T> a) {
  using Size = QueryPass<D>;
  constexpr int kKeys = Size::kKeys, kTiles = kKeys / 8;
  using KeyTile = SharedTile<T, kKeys, D>;
  using QueryTile = SharedTile<T, Size::kQueries, D>;
  extern __shared__ __align__(128) unsigned char shared_memory[];
  const AttentionProblem& p = a.p;
  const int lane = static_cast<int>(threadIdx.x % 32), warp = uniform_warp();
  const int t = lane % 4;

  const QueryBlock<Size> block(p);
  const int sequence = block.sequence, head = block.head, query0 = block.query0;

  const auto stage = [&](int n) { return shared_memory + n % Size::kStages * Size::kStageBytes; };
  const auto load_keys = [&](int n, int key0) {
    block.template load_keys<KeyTile>(a, key0, stage(n));
  };

  const Interval all = block.keys(p);
  unsigned char* const own =
      Size::kHold ? stage(1) : shared_memory + Size::kStages * Size::kStageBytes;
  const QueryTile query_tile{own}, gradient_tile{own + QueryTile::kBytes};
  query_tile.template load<Size::kThreads>(a.q.at(block.first_query, head), a.q.token,
                                           p.queries - query0, p.head_dim, a.wide);
  gradient_tile.template load<Size::kThreads>(a.dout.at(block.first_query, head), a.dout.token,
                                              p.queries - query0, p.head_dim, a.wide);
  if (Size::kStages == 2 && all.begin < all.end) load_keys(0, all.begin);

  const WarpRows rows(p, sequence, query0 + warp * 16, lane);
  SoftmaxDelta sums[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int i = rows.query[half];
    sums[half] = {INFINITY, 0};
    if (i < p.queries) {
      sums[half] = a.rows[(static_cast<int64_t>(sequence) * p.heads + head) * p.queries + i];
    }
  }
  uint64_t dropout_row = 0;
  if constexpr (kDropout) dropout_row = rows.dropout_row(p, sequence, lane);

  LeftRows<QueryTile, D, Size::kHold> queries{query_tile, warp * 16};
  LeftRows<QueryTile, D, Size::kHold> gradients{gradient_tile, warp * 16};
  if constexpr (Size::kHold) {
    wait_for_copies();
    __syncthreads();
    queries.hold(lane);
    gradients.hold(lane);
  }

  const float scale = p.scale * kLog2E;
  const float keep = kDropout ? p.keep_factor : 1.0f;
  float dq[D / 8][4] = {};
  for (int key0 = all.begin, n = 0; key0 < all.end; key0 += kKeys, ++n) {
    if constexpr (Size::kStages == 1) {
      __syncthreads();  // Every warp is done with the tiles.
      load_keys(0, key0);
    }
    wait_for_copies();
    __syncthreads();  // Also: every warp is done with the other stage.
    if (Size::kStages == 2 && key0 + kKeys < all.end) load_keys(n + 1, key0 + kKeys);
    if (rows.sees_nothing(key0, kKeys)) continue;
    const KeyTile keys{stage(n)}, values{stage(n) + KeyTile::kBytes};

    float s[kTiles][4] = {};
    if (a.bias.data != nullptr) {
      BiasOfQueries<T, kTiles> bias;
      bias.load(p, a.bias, a.bias_pairs, head, query0 + warp * 16, key0, lane);
      bias.add_to(s, 1 / p.scale);
    }
    add_product_of_rows<T, D>(s, queries, keys, lane);
#pragma unroll
    for (int tile8 = 0; tile8 < kTiles; ++tile8) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        s[tile8][e] = fast_exp2(fmaf(s[tile8][e], scale, -sums[e / 2].lse2));
      }
    }
    if (!rows.sees_all(key0, kKeys)) {
#pragma unroll
      for (int tile8 = 0; tile8 < kTiles; ++tile8) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int inside = tile8 * 8 + 2 * t + e % 2;
          if (!rows.sees(e / 2, key0 + inside)) s[tile8][e] = 0;
        }
      }
    }

    // Before dp, which needs the registers.
    DroppedKeys dropped{};
    if constexpr (kDropout) dropped = DroppedKeys::draw<kTiles>(p, dropout_row, head, key0, lane);
    float dp[kTiles][4] = {};
    add_product_of_rows<T, D>(dp, gradients, values, lane);
    if constexpr (kDropout) {
#pragma unroll
      for (int tile8 = 0; tile8 < kTiles; ++tile8) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          if (dropped(tile8, e)) dp[tile8][e] = 0;
        }
      }
    }
#pragma unroll
    for (int tile8 = 0; tile8 < kTiles; ++tile8) {
#pragma unroll
      for (int e = 0; e < 4; ++e) s[tile8][e] *= fmaf(dp[tile8][e], keep, -sums[e / 2].delta);
    }
    add_product<T, D>(dq, s, keys, 0, lane);
  }

  wait_for_copies();  // There are some where no key is seen.
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int i = rows.query[half];
    if (i >= p.queries) continue;
    T* row = a.dq.at(static_cast<int64_t>(sequence) * p.queries + i, head);
#pragma unroll
    for (int c = 0; c < D / 8; ++c) {
      store_pair(row, c * 8 + 2 * t, p.head_dim, a.pairs, dq[c][2 * half] * p.scale,
                 dq[c][2 * half + 1] * p.scale);
    }
  }
}

template <class T, int D, bool kDropout>
void launch_backward(Exec& ex, const BackwardArgs<T>& args) {
  const AttentionProblem& p = args.p;
  using Keys = KeyPass<D, false>;
  launch("attention_backward", flash_key_kernel<T, D, kDropout, false, true>,
         ceil_div(p.keys, Keys::kKeys) * p.sequences * p.kv_heads, Keys::kThreads,
         Keys::kSharedBytes, stream_of(ex), args, DqAccumulator{});
  using Queries = QueryPass<D>;
  launch("attention_backward", flash_dq_kernel<T, D, kDropout>,
         ceil_div(p.queries, Queries::kQueries) * p.sequences * p.heads, Queries::kThreads,
         Queries::kSharedBytes, stream_of(ex), args);
}

template <class T>
void backward(Exec& ex, const ops::AttentionBackward& a, const SoftmaxDelta* rows) {
  const BackwardArgs<T> args = backward_args<T>(a, rows);
  visit_tile(args.p.head_dim, args.p.drops,
             [&]<int D, bool kDropout> { launch_backward<T, D, kDropout>(ex, args); });
}

}  // namespace

bool flash_backward_is_one_pass(const ops::AttentionBackward& a, const DevicePolicy& policy) {
  return one_pass_may_serve(a, policy) && one_pass_fits(a);
}

void flash_backward(Exec& ex, const ops::AttentionBackward& a, const Tensor& workspace) {
  auto* rows = reinterpret_cast<SoftmaxDelta*>(workspace.data);
  compute_query_sums(ex, a, rows);
  if (!tensor_cores_serve(a.q, a.scale)) {
    simt_backward(ex, a, rows);
  } else if (flash_backward_is_one_pass(a, ex.device.policy())) {
    flash_one_pass(ex, a, rows, workspace.data + query_gradient_at(a));
  } else if (a.q.dtype == DType::bf16) {
    backward<__nv_bfloat16>(ex, a, rows);
  } else {
    backward<__half>(ex, a, rows);
  }
  if (a.dbias.present()) add_bias_gradient(ex, a, rows);
}

void flash_bias_gradient(Exec& ex, const ops::AttentionBackward& a, const Tensor& workspace) {
  auto* rows = reinterpret_cast<SoftmaxDelta*>(workspace.data);
  compute_query_sums(ex, a, rows);
  add_bias_gradient(ex, a, rows);
}

}  // namespace bev::cuda
