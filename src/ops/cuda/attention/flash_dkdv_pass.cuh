// The pass of attention's backward in which a block owns a tile of keys and walks over the queries
// that see them: dk and dv stay in registers. In one pass with dq, each tile of dS also goes
// through shared memory into dS k, which is added to sums in device memory.
#pragma once

#include "ops/cuda/attention/attention_dropout.cuh"
#include "ops/cuda/attention/attention_problem.cuh"
#include "ops/cuda/attention/flash_attention.h"
#include "ops/cuda/attention/flash_tiles.cuh"
#include "ops/cuda/attention/shared_tile.cuh"

namespace bev::cuda {

// If `inside`, atomically adds four values at `to`, which is aligned to 16 bytes. Returns nothing,
// so that the thread does not wait.
__device__ __forceinline__ void add_four(float* to, bool inside, float a, float b, float c,
                                         float d) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n.reg .pred inside;\nsetp.ne.b32 inside, %1, 0;\n"
      "@inside red.relaxed.gpu.global.add.v4.f32 [%0], {%2, %3, %4, %5};\n}" ::"l"(
          __cvta_generic_to_global(to)),
      "r"(static_cast<int>(inside)), "f"(a), "f"(b), "f"(c), "f"(d)
      : "memory");
#else
  if (!inside) return;
  atomicAdd(to, a);
  atomicAdd(to + 1, b);
  atomicAdd(to + 2, c);
  atomicAdd(to + 3, d);
#endif
}

// Sums of dq in device memory, in chunks of 16 columns. In a fragment, lane t of four holds columns
// 2 t, 2 t + 1, 2 t + 8 and 2 t + 9 of a chunk; in memory these four are adjacent, at 4 t.
struct DqAccumulator {
  float* sums;
  int queries, chunks;

  // `head`: counted over all sequences.
  __device__ __forceinline__ float* at(int64_t head, int chunk, int query) const {
    return sums + ((head * chunks + chunk) * queries + query) * kQueryChunk;
  }
};

// Arguments of the tensor-core kernels of attention backward.

template <class T>
struct BackwardArgs {
  AttentionProblem p;
  HeadRows<const T> dout, q, k, v;
  BiasRows<const T> bias;
  HeadRows<T> dq, dk, dv;
  const SoftmaxDelta* rows;
  // The inputs have wide rows; the results can be written in pairs, the bias read.
  bool wide, pairs, bias_pairs;
};

template <class T>
BackwardArgs<T> backward_args(const ops::AttentionBackward& a, const SoftmaxDelta* rows) {
  return {.p = problem_of(a),
          .dout = head_rows<T>(a.dout),
          .q = head_rows<T>(a.q),
          .k = head_rows<T>(a.k),
          .v = head_rows<T>(a.v),
          .bias = bias_rows<const T>(a.bias),
          .dq = head_rows<T>(a.dq),
          .dk = head_rows<T>(a.dk),
          .dv = head_rows<T>(a.dv),
          .rows = rows,
          .wide = has_wide_rows(a.q) && has_wide_rows(a.k) && has_wide_rows(a.v) &&
                  has_wide_rows(a.dout),
          .pairs = has_paired_rows(a.dq) && has_paired_rows(a.dk) && has_paired_rows(a.dv),
          .bias_pairs = has_paired_rows(a.bias)};
}

template <int D, bool kOnePass>
struct KeyPass {
  static constexpr int kWarps = kOnePass && D > 64 ? 8 : 4, kThreads = 32 * kWarps;
  // Number of warps that share keys: each computes all scores and its part of the columns of dk and
  // dv.
  static constexpr int kSplit = D == 256 ? 2 : 1;
  static constexpr int kColumns = D / kSplit;
  // Groups of 16 keys per warp. A warp reads the queries once for all its groups.
  static constexpr int kGroups = kOnePass && D == 64 ? 2 : 1;
  static constexpr int kOwnKeys = 16 * kGroups;
  static constexpr int kKeys = kOwnKeys * kWarps / kSplit;
  static constexpr int kQueries = kOnePass ? 64 : 32;
  static constexpr int kScored = 32;  // queries whose scores are in registers at a time
  static constexpr int kBlocksPerProcessor = kOnePass ? (D == 64 ? 2 : 1) : (D == 64 ? 3 : 2);
  static constexpr bool kHold = D == 64 && !kOnePass;  // keys and values stay in registers
  static constexpr int kKeyBytes = kKeys * D * 2, kQueryBytes = kQueries * D * 2;
  // A stage: queries, their gradients, and of each query the sums, the dropout row, the first key.
  static constexpr int kSumsAt = 2 * kQueryBytes;
  static constexpr int kRowsAt = kSumsAt + kQueries * 8;
  static constexpr int kFirstAt = kRowsAt + kQueries * 8;
  static constexpr int kStageBytes = kFirstAt + kQueries * 4;
  static_assert(kStageBytes % 128 == 0);
  static constexpr int kStagesAt = 2 * kKeyBytes;
  // Two tiles of dS: one is written while the one before is read.
  static constexpr int kScoresAt = kStagesAt + 2 * kStageBytes;
  static constexpr int kScoreBytes = kOnePass ? kKeys * kQueries * 2 : 0;
  static constexpr int kSharedBytes = kScoresAt + 2 * kScoreBytes;
};

// Adds dS k for one tile of dS [keys, 64 queries from query0 on] and the tile of its keys. Each
// warp has 32 queries and its part of the columns.
template <class T, int D, int kWarps, class Scores, class Keys>
__device__ __forceinline__ void add_query_gradient(const DqAccumulator& gradient, int64_t head,
                                                   int query0, const Scores& scores,
                                                   const Keys& keys, int warp, int lane) {
  constexpr int kRows = 2, kChunks = 2;  // fragments of 16 queries, chunks of 16 columns at a time
  constexpr int kPart = D / kQueryChunk / (kWarps / 2);
  static_assert(Scores::kChunks == 8 && kPart % kChunks == 0);
  const int rows = warp % 2 * kRows, part = warp / 2 * kPart;
  const int query = query0 + rows * 16 + lane / 4;
#pragma unroll 1
  for (int done = 0; done < kPart; done += kChunks) {
    const int chunk = part + done;
    if (chunk >= gradient.chunks) break;
    float sum[kRows][2 * kChunks][4] = {};
#pragma unroll
    for (int k = 0; k < Keys::kBytes / (D * 2) / 16; ++k) {
      uint32_t a[kRows][1][4];
#pragma unroll
      for (int row = 0; row < kRows; ++row) {
        scores.a_of_columns(a[row][0], k * 16, rows + row, lane);
      }
      add_products<T, kChunks * 16>(sum, a, keys, k * 16, chunk, lane);
    }
    float* const to = gradient.at(head, chunk, query) + lane % 4 * 4;
    const int64_t next_chunk = static_cast<int64_t>(gradient.queries) * kQueryChunk;
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int down = row * 16 + half * 8, e = 2 * half;
#pragma unroll
        for (int c = 0; c < kChunks; ++c) {
          const float(&left)[4] = sum[row][2 * c];
          const float(&right)[4] = sum[row][2 * c + 1];
          add_four(to + c * next_chunk + down * kQueryChunk,
                   query + down < gradient.queries && chunk + c < gradient.chunks, left[e],
                   left[e + 1], right[e], right[e + 1]);
        }
      }
    }
  }
}

// kBias: there may be a bias.
// `gradient` is used in one pass only. With dropout, dS and the gradient are then 1 / keep_factor
// of what they are elsewhere: two instructions less for each score.
template <class T, int D, bool kDropout, bool kOnePass, bool kBias>
__global__ void __launch_bounds__(KeyPass<D, kOnePass>::kThreads,
                                  KeyPass<D, kOnePass>::kBlocksPerProcessor)
    flash_key_kernel(const __grid_constant__ BackwardArgs<T> a,
                     const __grid_constant__ DqAccumulator gradient) {
  using Size = KeyPass<D, kOnePass>;
  constexpr int kQueries = Size::kQueries, kTiles = Size::kScored / 8, kGroups = Size::kGroups;
  constexpr int kOwnKeys = Size::kOwnKeys;
  using KeyTile = SharedTile<T, Size::kKeys, D>;
  using QueryTile = SharedTile<T, kQueries, D>;
  using ScoreTile = SharedTile<T, Size::kKeys, 64>;
  extern __shared__ __align__(128) unsigned char shared_memory[];
  const AttentionProblem& p = a.p;
  const int lane = static_cast<int>(threadIdx.x % 32), warp = uniform_warp();
  const int g = lane / 4, t = lane % 4;
  const int own_row = warp / Size::kSplit * kOwnKeys;  // of the tile
  const int part = warp % Size::kSplit;

  // The first keys are seen by most queries when causal: they start first.
  const BlockPlace place(p.sequences * p.kv_heads);
  const int key0 = place.tile * Size::kKeys;
  const int sequence = place.column / p.kv_heads;
  const int kv_head = place.column % p.kv_heads;
  const int group = p.heads / p.kv_heads;
  const int64_t sequence_query = static_cast<int64_t>(sequence) * p.queries;
  const int64_t sequence_key = static_cast<int64_t>(sequence) * p.keys;
  const int64_t sequence_head = static_cast<int64_t>(sequence) * p.heads;

  const Interval seen = p.queries_that_see<Size::kWarps>(
      sequence, key0, min(key0 + Size::kKeys, p.keys), reinterpret_cast<int*>(shared_memory));
  const int begin = seen.begin / kQueries * kQueries;
  const int tiles = seen.begin < seen.end ? (seen.end - begin + kQueries - 1) / kQueries : 0;
  // All tiles of one head, then of the next.
  const int steps = tiles * group;
  struct Step {
    int head, query0;
  };
  const int last_query0 = begin + (tiles - 1) * kQueries;
  const auto after = [&](Step step) {
    const bool same_head = step.query0 != last_query0;
    return same_head ? Step{step.head, step.query0 + kQueries} : Step{step.head + 1, begin};
  };
  const auto before = [&](Step step) {
    const bool same_head = step.query0 != begin;
    return same_head ? Step{step.head, step.query0 - kQueries} : Step{step.head - 1, last_query0};
  };

  const auto stage = [&](int n) {
    return shared_memory + Size::kStagesAt + (n & 1) * Size::kStageBytes;
  };
  const auto score_tile = [&](int n) {
    return ScoreTile{shared_memory + Size::kScoresAt + (n & 1) * Size::kScoreBytes};
  };
  const auto load_queries = [&](int n, Step step) {
    const int head = step.head, query0 = step.query0;
    const int rows = p.queries - query0;
    unsigned char* const to = stage(n);
    QueryTile{to}.template load<Size::kThreads>(a.q.at(sequence_query + query0, head), a.q.token,
                                                rows, p.head_dim, a.wide);
    QueryTile{to + Size::kQueryBytes}.template load<Size::kThreads>(
        a.dout.at(sequence_query + query0, head), a.dout.token, rows, p.head_dim, a.wide);
    constexpr int kTeams = Size::kThreads / kQueries;
    const auto i = static_cast<int>(threadIdx.x % kQueries);
    const auto team = static_cast<int>(threadIdx.x / kQueries);
    const bool inside = i < rows;
    const int64_t query = sequence_query + query0 + (inside ? i : 0);
    if (team == 0) {
      const int64_t row = (sequence_head + head) * p.queries + query0 + (inside ? i : 0);
      copy_async<8>(to + Size::kSumsAt + i * 8, a.rows + row, inside);
    } else if (team == 1) {
      if (kDropout) copy_async<8>(to + Size::kRowsAt + i * 8, p.dropout_rows + query, inside);
    }
    if (team == 2 % kTeams && p.document_start != nullptr) {
      copy_async<4>(to + Size::kFirstAt + i * 4, p.document_start + query, inside);
    }
  };

  const KeyTile key_tile{shared_memory}, value_tile{shared_memory + Size::kKeyBytes};
  key_tile.template load<Size::kThreads>(a.k.at(sequence_key + key0, kv_head), a.k.token,
                                         p.keys - key0, p.head_dim, a.wide);
  value_tile.template load<Size::kThreads>(a.v.at(sequence_key + key0, kv_head), a.v.token,
                                           p.keys - key0, p.head_dim, a.wide);
  Step step{kv_head * group, begin};
  if (steps > 0) load_queries(0, step);

  const int own_key0 = key0 + own_row;  // of this warp
  const int key_end = p.key_end(sequence);

  LeftRows<KeyTile, D, Size::kHold> own_keys[kGroups], own_values[kGroups];
#pragma unroll
  for (int of = 0; of < kGroups; ++of) {
    own_keys[of].tile = key_tile;
    own_values[of].tile = value_tile;
    own_keys[of].row = own_values[of].row = own_row + of * 16;
  }
  if constexpr (Size::kHold) {
    wait_for_copies();
    __syncthreads();
#pragma unroll
    for (int of = 0; of < kGroups; ++of) {
      own_keys[of].hold(lane);
      own_values[of].hold(lane);
    }
  }

  const float scale = p.scale * kLog2E;
  float dk[kGroups][Size::kColumns / 8][4] = {}, dv[kGroups][Size::kColumns / 8][4] = {};
  const int rounds = kOnePass ? steps + 1 : steps;
  for (int n = 0; n < rounds; ++n) {
    wait_for_copies();
    // Also: every warp has left the other stage, and written its dS of the last step and read that
    // of the one before.
    __syncthreads();
    step = after(step);
    if (n + 1 < steps) load_queries(n + 1, step);
    if constexpr (kOnePass) {
      if (n > 0) {
        const Step done = before(before(step));
        add_query_gradient<T, D, Size::kWarps>(gradient, sequence_head + done.head, done.query0,
                                               score_tile(n - 1), key_tile, warp, lane);
      }
      if (n == steps) break;
    }
    const Step now = before(step);
    unsigned char* const at = stage(n);
    const QueryTile queries{at}, gradients{at + Size::kQueryBytes};

#pragma unroll 1
    for (int row = 0; row < kQueries; row += Size::kScored) {
      const int first = now.query0 + row + p.offset;  // position of the first query
      const int last = first + Size::kScored - 1;
      const int32_t* const document_start =
          reinterpret_cast<const int32_t*>(at + Size::kFirstAt) + row;
      bool unseen = own_key0 >= key_end || (p.causal && own_key0 > last) ||
                    (p.window > 0 && own_key0 + kOwnKeys - 1 <= first - p.window);
      bool masked = own_key0 + kOwnKeys > key_end ||
                    (p.causal && own_key0 + kOwnKeys - 1 > first) ||
                    (p.window > 0 && own_key0 <= last - p.window);
      if (p.document_start != nullptr) {
        const int own = document_start[lane];
        unseen = unseen || __reduce_min_sync(kAllLanes, own) > own_key0 + kOwnKeys - 1;
        masked = masked || __reduce_max_sync(kAllLanes, own) > own_key0;
      }
      uint32_t ds[kGroups][kTiles / 2][4] = {};
      if (!unseen) {
        const SoftmaxDelta* const sums =
            reinterpret_cast<const SoftmaxDelta*>(at + Size::kSumsAt) + row;
        BiasOfKeys<T, 2 * kGroups, kTiles> bias;
        if (kBias && a.bias.data != nullptr) {
          bias.load(p, a.bias, a.bias_pairs, now.head, now.query0 + row, own_key0, lane);
        }
        float s[kGroups][kTiles][4] = {};
        add_products_of_rows<T, D>(s, own_keys, queries, row, lane);
        if (kBias && a.bias.data != nullptr) bias.add_to(s, 1 / p.scale);
#pragma unroll
        for (int tile8 = 0; tile8 < kTiles; ++tile8) {
          const float lse2[2] = {sums[tile8 * 8 + 2 * t].lse2, sums[tile8 * 8 + 2 * t + 1].lse2};
#pragma unroll
          for (int of = 0; of < kGroups; ++of) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
              s[of][tile8][e] = fast_exp2(fmaf(s[of][tile8][e], scale, -lse2[e % 2]));
            }
          }
        }
        if (masked) {
#pragma unroll
          for (int column = 0; column < 2 * kTiles; ++column) {
            const int inside = column / 2 * 8 + 2 * t + column % 2;
            Interval keys{0, key_end};
            if (p.causal) keys.end = min(key_end, first + inside + 1);
            if (p.window > 0) keys.begin = first + inside - p.window + 1;
            if (p.document_start != nullptr) keys.begin = max(keys.begin, document_start[inside]);
#pragma unroll
            for (int down = 0; down < kOwnKeys / 8; ++down) {
              const int key = own_key0 + g + 8 * down;
              if (key < keys.begin || key >= keys.end) {
                s[down / 2][column / 2][column % 2 + down % 2 * 2] = 0;
              }
            }
          }
        }

        float dp[kGroups][kTiles][4] = {};
        add_products_of_rows<T, D>(dp, own_values, gradients, row, lane);
        uint32_t kept[kGroups][kTiles / 2][4];  // the probabilities
#pragma unroll
        for (int of = 0; of < kGroups; ++of) {
          DroppedQueries dropped{};
          if constexpr (kDropout) {
            static_assert(kTiles == 4);
            dropped =
                DroppedQueries::draw(p, reinterpret_cast<const int64_t*>(at + Size::kRowsAt) + row,
                                     now.head, own_key0 + of * 16, lane);
          }
#pragma unroll
          for (int tile8 = 0; tile8 < kTiles; ++tile8) {
            const float share = kDropout && kOnePass ? p.kept_share : 1.0f;
            const float delta[2] = {sums[tile8 * 8 + 2 * t].delta * share,
                                    sums[tile8 * 8 + 2 * t + 1].delta * share};
#pragma unroll
            for (int e = 0; e < 4; ++e) {
              const bool drop = kDropout && dropped(tile8, e);
              float& probability = s[of][tile8][e];
              const float whole = probability, gradient = dp[of][tile8][e];
              if (drop) probability = 0;
              if constexpr (kDropout && kOnePass) {
                dp[of][tile8][e] = fmaf(probability, gradient, -(whole * delta[e % 2]));
              } else {
                const float keep = kDropout ? p.keep_factor : 1.0f;
                dp[of][tile8][e] = whole * fmaf(drop ? 0 : gradient, keep, -delta[e % 2]);
              }
            }
          }
#pragma unroll
          for (int k = 0; k < kTiles / 2; ++k) {
            as_a_fragment<T>(kept[of][k], s[of][2 * k], s[of][2 * k + 1]);
            as_a_fragment<T>(ds[of][k], dp[of][2 * k], dp[of][2 * k + 1]);
          }
        }
        constexpr int kChunks = Size::kColumns / 16;
        add_products<T, Size::kColumns>(dv, kept, gradients, row, part * kChunks, lane);
        add_products<T, Size::kColumns>(dk, ds, queries, row, part * kChunks, lane);
      }
      if constexpr (kOnePass) {
        if (part > 0) continue;
#pragma unroll
        for (int of = 0; of < kGroups; ++of) {
#pragma unroll
          for (int k = 0; k < kTiles / 2; ++k) {
            score_tile(n).store_fragment(ds[of][k], own_row + of * 16, row / 16 + k, lane);
          }
        }
      }
    }
  }

  wait_for_copies();
  const float keep = kDropout ? p.keep_factor : 1.0f;
  const float dk_scale = kDropout && kOnePass ? p.scale * keep : p.scale;
#pragma unroll
  for (int row = 0; row < kOwnKeys / 8; ++row) {
    const int key = own_key0 + g + 8 * row;
    if (key >= p.keys) continue;
    T* dk_row = a.dk.at(sequence_key + key, kv_head);
    T* dv_row = a.dv.at(sequence_key + key, kv_head);
#pragma unroll
    for (int c = 0; c < Size::kColumns / 8; ++c) {
      const int column = part * Size::kColumns + c * 8 + 2 * t;
      const int of = row / 2, e = row % 2 * 2;
      store_pair(dk_row, column, p.head_dim, a.pairs, dk[of][c][e] * dk_scale,
                 dk[of][c][e + 1] * dk_scale);
      store_pair(dv_row, column, p.head_dim, a.pairs, dv[of][c][e] * keep, dv[of][c][e + 1] * keep);
    }
  }
}

}  // namespace bev::cuda
