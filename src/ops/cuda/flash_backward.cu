// Attention backward on tensor cores, in two passes so that no sum depends on the order of blocks:
// one walks over queries for dk and dv, one over keys for dq. Both recompute P = exp(S - lse).
#include "ops/cuda/attention_dropout.cuh"
#include "ops/cuda/attention_problem.cuh"
#include "ops/cuda/flash_attention.h"
#include "ops/cuda/flash_tiles.cuh"
#include "ops/cuda/kernel_launch.cuh"
#include "ops/cuda/query_sums.h"
#include "ops/cuda/shared_tile.cuh"
#include "ops/cuda/simt_attention.h"

namespace bev::cuda {

namespace {

template <class T>
struct BackwardArgs {
  AttentionProblem p;
  HeadRows<const T> dout, q, k, v;
  HeadRows<T> dq, dk, dv;
  const QuerySums* rows;
  bool wide, pairs;  // the inputs have wide rows; the results can be written in pairs
};

// ---- dq
// -------------------------------------------------------------------------------------------

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
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  const int t = lane % 4;

  const int columns = p.sequences * p.heads;
  const int tile =
      static_cast<int>(gridDim.x / columns) - 1 - static_cast<int>(blockIdx.x) / columns;
  const int sequence = static_cast<int>(blockIdx.x) % columns / p.heads;
  const int head = static_cast<int>(blockIdx.x) % columns % p.heads;
  const int kv_head = head / (p.heads / p.kv_heads);
  const int query0 = tile * Size::kQueries;
  const int64_t first_query = static_cast<int64_t>(sequence) * p.queries + query0;
  const int64_t first_key = static_cast<int64_t>(sequence) * p.keys;

  const auto stage = [&](int n) { return shared_memory + n % Size::kStages * Size::kStageBytes; };
  const auto load_keys = [&](int n, int key0) {
    const int rows = p.keys - key0;
    KeyTile{stage(n)}.template load<Size::kThreads>(a.k.at(first_key + key0, kv_head), a.k.token,
                                                    rows, p.head_dim, a.wide);
    KeyTile{stage(n) + KeyTile::kBytes}.template load<Size::kThreads>(
        a.v.at(first_key + key0, kv_head), a.v.token, rows, p.head_dim, a.wide);
  };

  Interval all = p.interval_of_tile(sequence, query0, min(query0 + Size::kQueries, p.queries));
  all.begin = all.begin / kKeys * kKeys;
  unsigned char* const own =
      Size::kHold ? stage(1) : shared_memory + Size::kStages * Size::kStageBytes;
  const QueryTile query_tile{own}, gradient_tile{own + QueryTile::kBytes};
  query_tile.template load<Size::kThreads>(a.q.at(first_query, head), a.q.token, p.queries - query0,
                                           p.head_dim, a.wide);
  gradient_tile.template load<Size::kThreads>(a.dout.at(first_query, head), a.dout.token,
                                              p.queries - query0, p.head_dim, a.wide);
  if (Size::kStages == 2 && all.begin < all.end) load_keys(0, all.begin);

  const WarpRows rows(p, sequence, query0 + warp * 16, lane);
  QuerySums sums[2];
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
    const HiddenKeys<kKeys> hidden(p, first_key, key0, lane);

    float s[kTiles][4] = {};
    add_product_of_rows<T, D>(s, queries, keys, lane);
#pragma unroll
    for (int tile8 = 0; tile8 < kTiles; ++tile8) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        s[tile8][e] = fast_exp2(fmaf(s[tile8][e], scale, -sums[e / 2].lse2));
      }
    }
    if (!rows.sees_all(key0, kKeys) || hidden.any()) {
#pragma unroll
      for (int tile8 = 0; tile8 < kTiles; ++tile8) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int inside = tile8 * 8 + 2 * t + e % 2;
          if (!rows.sees(e / 2, key0 + inside) || hidden(inside)) s[tile8][e] = 0;
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

// ---- dk, dv
// ---------------------------------------------------------------------------------------

template <int D>
struct KeyPass {
  static constexpr int kWarps = 4, kThreads = 32 * kWarps;
  // So many warps share 16 keys: each computes all scores and its part of the columns of dk and dv.
  static constexpr int kSplit = D == 256 ? 2 : 1;
  static constexpr int kColumns = D / kSplit;
  static constexpr int kKeys = 16 * kWarps / kSplit;
  static constexpr int kQueries = 32;
  static constexpr int kBlocksPerProcessor = D == 64 ? 3 : 2;
  static constexpr bool kHold = D == 64;  // keys and values stay in registers
  static constexpr int kKeyBytes = kKeys * D * 2, kQueryBytes = kQueries * D * 2;
  // A stage: queries, their gradients, and of each query the sums, the dropout row, the first key.
  static constexpr int kSumsAt = 2 * kQueryBytes;
  static constexpr int kRowsAt = kSumsAt + kQueries * 8;
  static constexpr int kFirstAt = kRowsAt + kQueries * 8;
  static constexpr int kStageBytes = kFirstAt + kQueries * 4;
  static_assert(kStageBytes % 128 == 0);
  static constexpr int kStagesAt = 2 * kKeyBytes;
  static constexpr int kSharedBytes = kStagesAt + 2 * kStageBytes;
};

template <class T, int D, bool kDropout>
__global__ void __launch_bounds__(KeyPass<D>::kThreads, KeyPass<D>::kBlocksPerProcessor)
    flash_dkdv_kernel(const __grid_constant__ BackwardArgs<T> a) {
  using Size = KeyPass<D>;
  constexpr int kQueries = Size::kQueries, kTiles = kQueries / 8;
  using KeyTile = SharedTile<T, Size::kKeys, D>;
  using QueryTile = SharedTile<T, kQueries, D>;
  extern __shared__ __align__(128) unsigned char shared_memory[];
  const AttentionProblem& p = a.p;
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  const int g = lane / 4, t = lane % 4;
  const int key_group = warp / Size::kSplit;
  const int part = warp % Size::kSplit;

  // The first keys are seen by most queries when causal: they start first.
  const int columns = p.sequences * p.kv_heads;
  const int key0 = static_cast<int>(blockIdx.x) / columns * Size::kKeys;
  const int sequence = static_cast<int>(blockIdx.x) % columns / p.kv_heads;
  const int kv_head = static_cast<int>(blockIdx.x) % columns % p.kv_heads;
  const int group = p.heads / p.kv_heads;
  const int64_t sequence_query = static_cast<int64_t>(sequence) * p.queries;
  const int64_t sequence_key = static_cast<int64_t>(sequence) * p.keys;

  const Interval seen = p.queries_that_see<Size::kWarps>(
      sequence, key0, min(key0 + Size::kKeys, p.keys), reinterpret_cast<int*>(shared_memory));
  const int begin = seen.begin / kQueries * kQueries;
  const int tiles = seen.begin < seen.end ? (seen.end - begin + kQueries - 1) / kQueries : 0;
  // All tiles of one head, then of the next.
  const int steps = tiles * group;
  struct Step {
    int head, query0;
  };
  const auto next = [&](Step step) {
    const bool same_head = step.query0 + kQueries < seen.end;
    return same_head ? Step{step.head, step.query0 + kQueries} : Step{step.head + 1, begin};
  };

  const auto stage = [&](int n) {
    return shared_memory + Size::kStagesAt + n % 2 * Size::kStageBytes;
  };
  const auto load_queries = [&](int n, Step step) {
    const int head = step.head, query0 = step.query0;
    const int rows = p.queries - query0;
    unsigned char* const to = stage(n);
    QueryTile{to}.template load<Size::kThreads>(a.q.at(sequence_query + query0, head), a.q.token,
                                                rows, p.head_dim, a.wide);
    QueryTile{to + Size::kQueryBytes}.template load<Size::kThreads>(
        a.dout.at(sequence_query + query0, head), a.dout.token, rows, p.head_dim, a.wide);
    const int i = lane;
    static_assert(kQueries == 32);
    const bool inside = i < rows;
    const int64_t query = sequence_query + query0 + (inside ? i : 0);
    if (warp == 0) {
      const int64_t row =
          (static_cast<int64_t>(sequence) * p.heads + head) * p.queries + query0 + (inside ? i : 0);
      copy_async<8>(to + Size::kSumsAt + i * 8, a.rows + row, inside);
    } else if (warp == 1) {
      if (kDropout) copy_async<8>(to + Size::kRowsAt + i * 8, p.dropout_rows + query, inside);
    } else if (warp == 2) {
      if (p.first_visible != nullptr) {
        copy_async<4>(to + Size::kFirstAt + i * 4, p.first_visible + query, inside);
      }
    }
  };

  const KeyTile key_tile{shared_memory}, value_tile{shared_memory + Size::kKeyBytes};
  key_tile.template load<Size::kThreads>(a.k.at(sequence_key + key0, kv_head), a.k.token,
                                         p.keys - key0, p.head_dim, a.wide);
  value_tile.template load<Size::kThreads>(a.v.at(sequence_key + key0, kv_head), a.v.token,
                                           p.keys - key0, p.head_dim, a.wide);
  Step step{kv_head * group, begin};
  if (steps > 0) load_queries(0, step);

  const int own_key0 = key0 + key_group * 16;  // of this warp
  bool visible[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int key = own_key0 + g + 8 * half;
    visible[half] =
        key < p.keys && (p.key_visible == nullptr || p.key_visible[sequence_key + key] != 0);
  }
  const bool all_visible = __all_sync(kAllLanes, visible[0] && visible[1]);

  LeftRows<KeyTile, D, Size::kHold> own_keys{key_tile, key_group * 16};
  LeftRows<KeyTile, D, Size::kHold> own_values{value_tile, key_group * 16};
  if constexpr (Size::kHold) {
    wait_for_copies();
    __syncthreads();
    own_keys.hold(lane);
    own_values.hold(lane);
  }

  const float scale = p.scale * kLog2E;
  const float keep = kDropout ? p.keep_factor : 1.0f;
  float dk[Size::kColumns / 8][4] = {}, dv[Size::kColumns / 8][4] = {};
  for (int n = 0; n < steps; ++n) {
    wait_for_copies();
    __syncthreads();  // Also: every warp is done with the other stage.
    const int head = step.head;
    const int first = step.query0 + p.offset;  // position of the first query
    step = next(step);
    if (n + 1 < steps) load_queries(n + 1, step);
    const int last = first + kQueries - 1;
    if (own_key0 >= p.keys || (p.causal && own_key0 > last) ||
        (p.window > 0 && own_key0 + 15 <= first - p.window)) {
      continue;
    }
    unsigned char* const at = stage(n);
    const auto* const first_visible = reinterpret_cast<const int32_t*>(at + Size::kFirstAt);
    bool masked = !all_visible || (p.causal && own_key0 + 15 > first) ||
                  (p.window > 0 && own_key0 <= last - p.window);
    if (p.first_visible != nullptr) {
      const int own = first_visible[lane];
      if (__reduce_min_sync(kAllLanes, own) > own_key0 + 15) continue;
      masked = masked || __reduce_max_sync(kAllLanes, own) > own_key0;
    }
    const auto* const sums = reinterpret_cast<const QuerySums*>(at + Size::kSumsAt);
    const QueryTile queries{at}, gradients{at + Size::kQueryBytes};

    float s[kTiles][4] = {};
    add_product_of_rows<T, D>(s, own_keys, queries, lane);
#pragma unroll
    for (int tile8 = 0; tile8 < kTiles; ++tile8) {
      const float lse2[2] = {sums[tile8 * 8 + 2 * t].lse2, sums[tile8 * 8 + 2 * t + 1].lse2};
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        s[tile8][e] = fast_exp2(fmaf(s[tile8][e], scale, -lse2[e % 2]));
      }
    }
    if (masked) {
#pragma unroll
      for (int column = 0; column < 2 * kTiles; ++column) {
        const int inside = column / 2 * 8 + 2 * t + column % 2;
        Interval seen{0, p.keys};
        if (p.causal) seen.end = min(p.keys, first + inside + 1);
        if (p.window > 0) seen.begin = first + inside - p.window + 1;
        if (p.first_visible != nullptr) seen.begin = max(seen.begin, first_visible[inside]);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int key = own_key0 + g + 8 * half;
          if (!visible[half] || key < seen.begin || key >= seen.end) {
            s[column / 2][column % 2 + 2 * half] = 0;
          }
        }
      }
    }

    // Before dp, which needs the registers.
    DroppedQueries dropped{};
    if constexpr (kDropout) {
      static_assert(kTiles == 4);
      dropped = DroppedQueries::draw(p, reinterpret_cast<const int64_t*>(at + Size::kRowsAt), head,
                                     own_key0, lane);
    }
    float dp[kTiles][4] = {};
    add_product_of_rows<T, D>(dp, own_values, gradients, lane);
    float ds[kTiles][4];
#pragma unroll
    for (int tile8 = 0; tile8 < kTiles; ++tile8) {
      const float delta[2] = {sums[tile8 * 8 + 2 * t].delta, sums[tile8 * 8 + 2 * t + 1].delta};
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const bool drops = kDropout && dropped(tile8, e);
        ds[tile8][e] = s[tile8][e] * fmaf(drops ? 0 : dp[tile8][e], keep, -delta[e % 2]);
        if (drops) s[tile8][e] = 0;
      }
    }
    constexpr int kChunks = Size::kColumns / 16;
    add_product<T, Size::kColumns>(dv, s, gradients, part * kChunks, lane);
    add_product<T, Size::kColumns>(dk, ds, queries, part * kChunks, lane);
  }

  wait_for_copies();
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int key = own_key0 + g + 8 * half;
    if (key >= p.keys) continue;
    T* dk_row = a.dk.at(sequence_key + key, kv_head);
    T* dv_row = a.dv.at(sequence_key + key, kv_head);
#pragma unroll
    for (int c = 0; c < Size::kColumns / 8; ++c) {
      const int column = part * Size::kColumns + c * 8 + 2 * t;
      store_pair(dk_row, column, p.head_dim, a.pairs, dk[c][2 * half] * p.scale,
                 dk[c][2 * half + 1] * p.scale);
      store_pair(dv_row, column, p.head_dim, a.pairs, dv[c][2 * half] * keep,
                 dv[c][2 * half + 1] * keep);
    }
  }
}

template <class T, int D, bool kDropout>
void launch_backward(Exec& ex, const BackwardArgs<T>& args) {
  const AttentionProblem& p = args.p;
  using Keys = KeyPass<D>;
  launch("attention_backward", flash_dkdv_kernel<T, D, kDropout>,
         ceil_div(p.keys, Keys::kKeys) * p.sequences * p.kv_heads, Keys::kThreads,
         Keys::kSharedBytes, stream_of(ex), args);
  using Queries = QueryPass<D>;
  launch("attention_backward", flash_dq_kernel<T, D, kDropout>,
         ceil_div(p.queries, Queries::kQueries) * p.sequences * p.heads, Queries::kThreads,
         Queries::kSharedBytes, stream_of(ex), args);
}

template <class T>
void backward(Exec& ex, const ops::AttentionBackward& a, const QuerySums* rows) {
  const BackwardArgs<T> args{
      .p = problem_of(a),
      .dout = head_rows<T>(a.dout),
      .q = head_rows<T>(a.q),
      .k = head_rows<T>(a.k),
      .v = head_rows<T>(a.v),
      .dq = head_rows<T>(a.dq),
      .dk = head_rows<T>(a.dk),
      .dv = head_rows<T>(a.dv),
      .rows = rows,
      .wide =
          has_wide_rows(a.q) && has_wide_rows(a.k) && has_wide_rows(a.v) && has_wide_rows(a.dout),
      .pairs = has_paired_rows(a.dq) && has_paired_rows(a.dk) && has_paired_rows(a.dv)};
  visit_tile(args.p.head_dim, args.p.drops,
             [&]<int D, bool kDropout> { launch_backward<T, D, kDropout>(ex, args); });
}

}  // namespace

void flash_backward(Exec& ex, const ops::AttentionBackward& a, const Tensor& workspace) {
  auto* rows = reinterpret_cast<QuerySums*>(workspace.data);
  compute_query_sums(ex, a, rows);
  if (!tensor_cores_serve(a.q, a.scale)) {
    simt_backward(ex, a, rows);
  } else if (a.q.dtype == DType::bf16) {
    backward<__nv_bfloat16>(ex, a, rows);
  } else {
    backward<__half>(ex, a, rows);
  }
}

}  // namespace bev::cuda
