// Attention in f32 on the ordinary cores. A block owns 64 rows (queries, or keys for dk and dv) and
// walks over tiles of 64; operands pass through shared memory 32 columns at a time. Results wider
// than a block's columns are shared among several blocks, each of which computes all scores.
#include "ops/cuda/attention/attention_dropout.cuh"
#include "ops/cuda/attention/attention_problem.cuh"
#include "ops/cuda/attention/bias_gradient_place.cuh"
#include "ops/cuda/attention/flash_attention.h"
#include "ops/cuda/primitives/launch_kernel.cuh"

namespace bev::cuda {

namespace {

constexpr int kTile = 64, kChunk = 32;
constexpr int kSide = 16, kThreads = kSide * kSide;  // thread (y, x): rows y + 16 r, columns x + 16
                                                     // c
constexpr int kEach = kTile / kSide;                 // rows and columns of a thread in a tile
constexpr int kChunkPitch = kChunk + 1, kScorePitch = kTile + 1;  // odd: no bank conflicts
constexpr int kWarps = kThreads / 32;

struct Buffers {
  float* left;    // [kTile][kChunkPitch]
  float* right;   // [kTile][kChunkPitch]
  float* scores;  // [query][kScorePitch]
};
constexpr int kSharedBytes = (2 * kTile * kChunkPitch + kTile * kScorePitch) * 4;

__device__ __forceinline__ Buffers buffers(float* shared) {
  return {shared, shared + kTile * kChunkPitch, shared + 2 * kTile * kChunkPitch};
}

// Rows of one head from some row on.
template <class T>
struct Panel {
  const T* data;
  int64_t stride;
  int rows;

  // Columns [column, column + kChunk) of the first kTile rows; zeros outside.
  __device__ __forceinline__ void load(float* to, int column, int head_dim) const {
    for (int n = static_cast<int>(threadIdx.x); n < kTile * kChunk; n += kThreads) {
      const int row = n / kChunk, c = n % kChunk;
      const bool inside = row < rows && column + c < head_dim;
      to[row * kChunkPitch + c] = inside ? to_float(data[row * stride + column + c]) : 0.0f;
    }
  }
};

template <class T>
__device__ __forceinline__ Panel<T> panel(const HeadRows<const T>& t, int64_t row, int head,
                                          int rows) {
  return {t.at(row, head), t.token, rows};
}

using Fragment = float[kEach][kEach];

// s[r][c] = left[y + 16 r] . right[x + 16 c].  Ends with the buffers still in use.
template <class T>
__device__ __forceinline__ void dot_rows(Fragment& s, const Buffers& b, const Panel<T>& left,
                                         const Panel<T>& right, int head_dim, int y, int x) {
#pragma unroll
  for (int r = 0; r < kEach; ++r) {
#pragma unroll
    for (int c = 0; c < kEach; ++c) s[r][c] = 0;
  }
  for (int column = 0; column < head_dim; column += kChunk) {
    __syncthreads();
    left.load(b.left, column, head_dim);
    right.load(b.right, column, head_dim);
    __syncthreads();
#pragma unroll 8
    for (int k = 0; k < kChunk; ++k) {
      float one[kEach], other[kEach];
#pragma unroll
      for (int r = 0; r < kEach; ++r) one[r] = b.left[(y + kSide * r) * kChunkPitch + k];
#pragma unroll
      for (int c = 0; c < kEach; ++c) other[c] = b.right[(x + kSide * c) * kChunkPitch + k];
#pragma unroll
      for (int r = 0; r < kEach; ++r) {
#pragma unroll
        for (int c = 0; c < kEach; ++c) s[r][c] = fmaf(one[r], other[c], s[r][c]);
      }
    }
  }
}

__device__ __forceinline__ void put_scores(const Buffers& b, const Fragment& s, int y, int x) {
#pragma unroll
  for (int r = 0; r < kEach; ++r) {
#pragma unroll
    for (int c = 0; c < kEach; ++c)
      b.scores[(y + kSide * r) * kScorePitch + x + kSide * c] = s[r][c];
  }
}

// out[r][2 n + c] += sum over k of scores * right[k][column0 + 32 n + x + 16 c]; the scores of row
// y + 16 r are b.scores[row][k], or b.scores[k][row] when kTransposed. All threads have put their
// scores before.
template <bool kTransposed, int kParts, class T>
__device__ __forceinline__ void add_weighted_rows(float (&out)[kEach][2 * kParts], const Buffers& b,
                                                  const Panel<T>& right, int column0, int head_dim,
                                                  int y, int x) {
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
    const int column = column0 + part * kChunk;
    if (column >= head_dim) break;
    __syncthreads();
    right.load(b.right, column, head_dim);
    __syncthreads();
#pragma unroll 8
    for (int k = 0; k < kTile; ++k) {
      const float first = b.right[k * kChunkPitch + x];
      const float second = b.right[k * kChunkPitch + x + kSide];
#pragma unroll
      for (int r = 0; r < kEach; ++r) {
        const int row = y + kSide * r;
        const float weight =
            kTransposed ? b.scores[k * kScorePitch + row] : b.scores[row * kScorePitch + k];
        out[r][2 * part] = fmaf(weight, first, out[r][2 * part]);
        out[r][2 * part + 1] = fmaf(weight, second, out[r][2 * part + 1]);
      }
    }
  }
}

template <int kParts, class T>
__device__ __forceinline__ void store_row(T* row, const float (&values)[2 * kParts], float factor,
                                          int column0, int head_dim, int x) {
#pragma unroll
  for (int n = 0; n < 2 * kParts; ++n) {
    const int column = column0 + n * kSide + x;
    if (column < head_dim) row[column] = from_float<T>(values[n] * factor);
  }
}

__device__ __forceinline__ uint64_t dropout_row(const AttentionProblem& p, int64_t query) {
  return static_cast<uint64_t>(p.dropout_rows[query]);
}

// Over the 16 threads of a row.
template <class F>
__device__ __forceinline__ float across_row(float value, F combine) {
#pragma unroll
  for (int offset = kSide / 2; offset > 0; offset /= 2) {
    value = combine(value, __shfl_xor_sync(kAllLanes, value, offset));
  }
  return value;
}

// Which part of the work a block has. Blocks of one tile of rows and different heads are adjacent.
struct Place {
  int sequence, head, tile, column0;

  __device__ __forceinline__ Place(int sequences, int heads, int tiles, int columns) {
    int64_t rest = blockIdx.x;
    head = static_cast<int>(rest % heads);
    rest /= heads;
    sequence = static_cast<int>(rest % sequences);
    rest /= sequences;
    tile = static_cast<int>(rest % tiles);
    column0 = static_cast<int>(rest / tiles) * columns;
  }
};

// The score of a product, to base 2. Args: has p and bias.
template <class Args>
__device__ __forceinline__ float score_of(const Args& a, float product, int head, int query,
                                          int key) {
  const float score = product * (a.p.scale * kLog2E);
  return a.bias.data == nullptr ? score
                                : fmaf(to_float(a.bias.at(head, query)[key]), kLog2E, score);
}

template <class T>
struct ForwardArgs {
  AttentionProblem p;
  HeadRows<const T> q, k, v;
  BiasRows<const T> bias;
  HeadRows<T> out;
  float* lse;
  int64_t lse_sequence, lse_head;
  int tiles = 0;
};

// kParts: columns of a block / kChunk.
template <class T, int kParts>
__global__ void __launch_bounds__(kThreads)
    simt_forward_kernel(const __grid_constant__ ForwardArgs<T> a) {
  extern __shared__ __align__(128) unsigned char shared_memory[];
  const Buffers b = buffers(reinterpret_cast<float*>(shared_memory));
  const AttentionProblem& p = a.p;
  const int x = static_cast<int>(threadIdx.x) % kSide, y = static_cast<int>(threadIdx.x) / kSide;
  const Place at(p.sequences, p.heads, a.tiles, kParts * kChunk);
  const int kv_head = at.head / (p.heads / p.kv_heads);
  const int query0 = (a.tiles - 1 - at.tile) * kTile;
  const int64_t sequence_query = static_cast<int64_t>(at.sequence) * p.queries;
  const int64_t sequence_key = static_cast<int64_t>(at.sequence) * p.keys;
  const Panel<T> queries = panel(a.q, sequence_query + query0, at.head, p.queries - query0);

  Interval seen[kEach];
  uint64_t rows[kEach] = {};
  float maximum[kEach], sum[kEach], out[kEach][2 * kParts] = {};
#pragma unroll
  for (int r = 0; r < kEach; ++r) {
    const int i = query0 + y + kSide * r;
    seen[r] = {0, 0};
    if (i < p.queries) {
      seen[r] = p.interval(at.sequence, i);
      if (p.drops) rows[r] = dropout_row(p, sequence_query + i);
    }
    maximum[r] = -INFINITY;
    sum[r] = 0;
  }
  const Interval all = p.interval_of_tile(at.sequence, query0, min(query0 + kTile, p.queries));
  for (int key0 = all.begin / kTile * kTile; key0 < all.end; key0 += kTile) {
    Fragment s;
    dot_rows(s, b, queries, panel(a.k, sequence_key + key0, kv_head, p.keys - key0), p.head_dim, y,
             x);
#pragma unroll
    for (int r = 0; r < kEach; ++r) {
      float largest = maximum[r];
#pragma unroll
      for (int c = 0; c < kEach; ++c) {
        const int key = key0 + x + kSide * c;
        const bool sees = key >= seen[r].begin && key < seen[r].end;
        s[r][c] = sees ? score_of(a, s[r][c], at.head, query0 + y + kSide * r, key) : -INFINITY;
        largest = fmaxf(largest, s[r][c]);
      }
      largest = across_row(largest, [](float u, float v) { return fmaxf(u, v); });
      const float shift = largest == -INFINITY ? 0 : largest;
      const float correction = exp2f(maximum[r] - shift);
      maximum[r] = largest;
      sum[r] *= correction;
#pragma unroll
      for (int n = 0; n < 2 * kParts; ++n) out[r][n] *= correction;
#pragma unroll
      for (int c = 0; c < kEach; ++c) {
        s[r][c] = exp2f(s[r][c] - shift);
        sum[r] += s[r][c];
        if (p.drops && s[r][c] > 0 && is_dropped(p, rows[r], at.head, key0 + x + kSide * c)) {
          s[r][c] = 0;
        }
      }
    }
    put_scores(b, s, y, x);
    add_weighted_rows<false, kParts>(out, b,
                                     panel(a.v, sequence_key + key0, kv_head, p.keys - key0),
                                     at.column0, p.head_dim, y, x);
  }
#pragma unroll
  for (int r = 0; r < kEach; ++r) {
    const float total = across_row(sum[r], [](float u, float v) { return u + v; });
    const int i = query0 + y + kSide * r;
    if (i >= p.queries) continue;
    if (x == 0 && at.column0 == 0) {
      a.lse[at.sequence * a.lse_sequence + at.head * a.lse_head + i] =
          total == 0 ? -INFINITY : (maximum[r] + log2f(total)) / kLog2E;
    }
    store_row<kParts>(a.out.at(sequence_query + i, at.head), out[r],
                      total == 0 ? 0 : (p.drops ? p.keep_factor : 1.0f) / total, at.column0,
                      p.head_dim, x);
  }
}

template <class T>
struct BackwardArgs {
  AttentionProblem p;
  HeadRows<const T> dout, q, k, v;
  BiasRows<const T> bias;
  HeadRows<T> dq, dk, dv;
  const SoftmaxDelta* rows;
  int tiles = 0;
};

// Turns scores s and dA = dp of a tile into A = P * D and dS.
template <class T>
__device__ __forceinline__ void scores_to_gradients(const BackwardArgs<T>& a, Fragment& s,
                                                    Fragment& dp, int sequence, int head,
                                                    int query0, int key0, int y, int x) {
  const AttentionProblem& p = a.p;
  const int64_t sequence_query = static_cast<int64_t>(sequence) * p.queries;
#pragma unroll
  for (int r = 0; r < kEach; ++r) {
    const int i = query0 + y + kSide * r;
    Interval seen{0, 0};
    SoftmaxDelta sums{INFINITY, 0};
    uint64_t row = 0;
    if (i < p.queries) {
      seen = p.interval(sequence, i);
      sums = a.rows[(static_cast<int64_t>(sequence) * p.heads + head) * p.queries + i];
      if (p.drops) row = dropout_row(p, sequence_query + i);
    }
#pragma unroll
    for (int c = 0; c < kEach; ++c) {
      const int key = key0 + x + kSide * c;
      const bool sees = key >= seen.begin && key < seen.end;
      const float probability = sees ? exp2f(score_of(a, s[r][c], head, i, key) - sums.lse2) : 0;
      float factor = 1;
      if (p.drops) {
        factor = sees && is_dropped(p, row, head, key) ? 0 : p.keep_factor;
      }
      s[r][c] = probability * factor;
      dp[r][c] = probability * (dp[r][c] * factor - sums.delta);
    }
  }
}

template <class T, int kParts>
__global__ void __launch_bounds__(kThreads)
    simt_dq_kernel(const __grid_constant__ BackwardArgs<T> a) {
  extern __shared__ __align__(128) unsigned char shared_memory[];
  const Buffers b = buffers(reinterpret_cast<float*>(shared_memory));
  const AttentionProblem& p = a.p;
  const int x = static_cast<int>(threadIdx.x) % kSide, y = static_cast<int>(threadIdx.x) / kSide;
  const Place at(p.sequences, p.heads, a.tiles, kParts * kChunk);
  const int kv_head = at.head / (p.heads / p.kv_heads);
  const int query0 = (a.tiles - 1 - at.tile) * kTile;
  const int64_t sequence_query = static_cast<int64_t>(at.sequence) * p.queries;
  const int64_t sequence_key = static_cast<int64_t>(at.sequence) * p.keys;
  const int left = p.queries - query0;
  const Panel<T> queries = panel(a.q, sequence_query + query0, at.head, left);
  const Panel<T> gradients = panel(a.dout, sequence_query + query0, at.head, left);

  float dq[kEach][2 * kParts] = {};
  const Interval all = p.interval_of_tile(at.sequence, query0, min(query0 + kTile, p.queries));
  for (int key0 = all.begin / kTile * kTile; key0 < all.end; key0 += kTile) {
    const Panel<T> keys = panel(a.k, sequence_key + key0, kv_head, p.keys - key0);
    const Panel<T> values = panel(a.v, sequence_key + key0, kv_head, p.keys - key0);
    Fragment s, dp;
    dot_rows(s, b, queries, keys, p.head_dim, y, x);
    dot_rows(dp, b, gradients, values, p.head_dim, y, x);
    scores_to_gradients(a, s, dp, at.sequence, at.head, query0, key0, y, x);
    put_scores(b, dp, y, x);
    add_weighted_rows<false, kParts>(dq, b, keys, at.column0, p.head_dim, y, x);
  }
#pragma unroll
  for (int r = 0; r < kEach; ++r) {
    const int i = query0 + y + kSide * r;
    if (i >= p.queries) continue;
    store_row<kParts>(a.dq.at(sequence_query + i, at.head), dq[r], p.scale, at.column0, p.head_dim,
                      x);
  }
}

template <class T, int kParts>
__global__ void __launch_bounds__(kThreads)
    simt_dkdv_kernel(const __grid_constant__ BackwardArgs<T> a) {
  extern __shared__ __align__(128) unsigned char shared_memory[];
  const Buffers b = buffers(reinterpret_cast<float*>(shared_memory));
  const AttentionProblem& p = a.p;
  const int x = static_cast<int>(threadIdx.x) % kSide, y = static_cast<int>(threadIdx.x) / kSide;
  const Place at(p.sequences, p.kv_heads, a.tiles, kParts * kChunk);
  const int group = p.heads / p.kv_heads;
  const int key0 = at.tile * kTile;
  const int64_t sequence_query = static_cast<int64_t>(at.sequence) * p.queries;
  const int64_t sequence_key = static_cast<int64_t>(at.sequence) * p.keys;
  const Panel<T> keys = panel(a.k, sequence_key + key0, at.head, p.keys - key0);
  const Panel<T> values = panel(a.v, sequence_key + key0, at.head, p.keys - key0);

  float dk[kEach][2 * kParts] = {}, dv[kEach][2 * kParts] = {};
  const Interval seen = p.queries_that_see<kWarps>(at.sequence, key0, min(key0 + kTile, p.keys),
                                                   reinterpret_cast<int*>(shared_memory));
  for (int head = at.head * group; head < (at.head + 1) * group; ++head) {
    for (int query0 = seen.begin / kTile * kTile; query0 < seen.end; query0 += kTile) {
      const int left = p.queries - query0;
      const Panel<T> queries = panel(a.q, sequence_query + query0, head, left);
      const Panel<T> gradients = panel(a.dout, sequence_query + query0, head, left);
      Fragment s, dp;
      dot_rows(s, b, queries, keys, p.head_dim, y, x);
      dot_rows(dp, b, gradients, values, p.head_dim, y, x);
      scores_to_gradients(a, s, dp, at.sequence, head, query0, key0, y, x);
      put_scores(b, s, y, x);
      add_weighted_rows<true, kParts>(dv, b, gradients, at.column0, p.head_dim, y, x);
      __syncthreads();
      put_scores(b, dp, y, x);
      add_weighted_rows<true, kParts>(dk, b, queries, at.column0, p.head_dim, y, x);
    }
  }
#pragma unroll
  for (int r = 0; r < kEach; ++r) {
    const int key = key0 + y + kSide * r;
    if (key >= p.keys) continue;
    store_row<kParts>(a.dk.at(sequence_key + key, at.head), dk[r], p.scale, at.column0, p.head_dim,
                      x);
    store_row<kParts>(a.dv.at(sequence_key + key, at.head), dv[r], 1, at.column0, p.head_dim, x);
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    simt_bias_kernel(const __grid_constant__ BackwardArgs<T> a,
                     const __grid_constant__ BiasGradient gradient) {
  extern __shared__ __align__(128) unsigned char shared_memory[];
  const Buffers b = buffers(reinterpret_cast<float*>(shared_memory));
  const AttentionProblem& p = a.p;
  const int x = static_cast<int>(threadIdx.x) % kSide, y = static_cast<int>(threadIdx.x) / kSide;
  const BiasGradientPlace at(p, gradient, kTile, kTile);
  const int kv_head = at.head / (p.heads / p.kv_heads);
  Fragment sum = {};
  for (int sequence = at.next(p, gradient, at.first_sequence); sequence < p.sequences;
       sequence = at.next(p, gradient, sequence + gradient.splits)) {
    const int64_t query = static_cast<int64_t>(sequence) * p.queries + at.query0;
    const int64_t key = static_cast<int64_t>(sequence) * p.keys + at.key0;
    const int queries = p.queries - at.query0, keys = p.keys - at.key0;
    Fragment s, dp;
    dot_rows(s, b, panel(a.q, query, at.head, queries), panel(a.k, key, kv_head, keys), p.head_dim,
             y, x);
    dot_rows(dp, b, panel(a.dout, query, at.head, queries), panel(a.v, key, kv_head, keys),
             p.head_dim, y, x);
    scores_to_gradients(a, s, dp, sequence, at.head, at.query0, at.key0, y, x);
#pragma unroll
    for (int r = 0; r < kEach; ++r) {
#pragma unroll
      for (int c = 0; c < kEach; ++c) sum[r][c] += dp[r][c];
    }
  }
#pragma unroll
  for (int r = 0; r < kEach; ++r) {
#pragma unroll
    for (int c = 0; c < kEach; ++c) {
      const int i = at.query0 + y + kSide * r, j = at.key0 + x + kSide * c;
      if (i < p.queries && j < p.keys) gradient.add(gradient.dbias.at(at.head, i) + j, sum[r][c]);
    }
  }
}

// Calls f<T, kParts>(blocks that share the columns).
template <class F>
void visit_columns(DType dtype, int64_t head_dim, F&& f) {
  visit_cuda(dtype, "attention", [&]<class T> {
    if (std::is_same_v<T, float> && head_dim <= 2 * kChunk) {
      f.template operator()<float, 2>(int64_t{1});
    } else {
      f.template operator()<T, 4>(std::max<int64_t>(1, ceil_div(head_dim, 4 * kChunk)));
    }
  });
}

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
          .rows = rows};
}

}  // namespace

void simt_forward(Exec& ex, const ops::Attention& a) {
  visit_columns(a.q.dtype, a.q.shape[2], [&]<class T, int kParts>(int64_t sharing) {
    ForwardArgs<T> args{.p = problem_of(a),
                        .q = head_rows<T>(a.q),
                        .k = head_rows<T>(a.k),
                        .v = head_rows<T>(a.v),
                        .bias = bias_rows<const T>(a.bias),
                        .out = head_rows<T>(a.out),
                        .lse = data_of<float>(a.lse),
                        .lse_sequence = a.lse.stride[0],
                        .lse_head = a.lse.stride[1]};
    args.tiles = static_cast<int>(ceil_div(args.p.queries, kTile));
    launch("attention", simt_forward_kernel<T, kParts>,
           sharing * args.tiles * args.p.sequences * args.p.heads, kThreads, kSharedBytes,
           stream_of(ex), args);
  });
}

void simt_backward(Exec& ex, const ops::AttentionBackward& a, const SoftmaxDelta* rows) {
  visit_columns(a.q.dtype, a.q.shape[2], [&]<class T, int kParts>(int64_t sharing) {
    BackwardArgs<T> args = backward_args<T>(a, rows);
    const AttentionProblem& p = args.p;
    args.tiles = static_cast<int>(ceil_div(p.keys, kTile));
    launch("attention_backward", simt_dkdv_kernel<T, kParts>,
           sharing * args.tiles * p.sequences * p.kv_heads, kThreads, kSharedBytes, stream_of(ex),
           args);
    args.tiles = static_cast<int>(ceil_div(p.queries, kTile));
    launch("attention_backward", simt_dq_kernel<T, kParts>,
           sharing * args.tiles * p.sequences * p.heads, kThreads, kSharedBytes, stream_of(ex),
           args);
  });
}

void simt_bias_gradient(Exec& ex, const ops::AttentionBackward& a, const SoftmaxDelta* rows) {
  visit_cuda(a.q.dtype, "attention_backward", [&]<class T> {
    const BiasGradient gradient = bias_gradient(ex, a, kTile, kTile);
    launch("attention_backward", simt_bias_kernel<T>, gradient.blocks(), kThreads, kSharedBytes,
           stream_of(ex), backward_args<T>(a, rows), gradient);
  });
}

}  // namespace bev::cuda
