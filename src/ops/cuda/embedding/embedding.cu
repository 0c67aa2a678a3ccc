#include <bit>
#include <utility>

#include "ops/cuda/primitives/vector_rows.cuh"
#include "ops/cuda/workspace.h"
#include "ops/embedding.h"
#include "ops/op_table.h"

namespace bev::cuda {

namespace {

constexpr int kThreads = 256;

template <class T>
__global__ void __launch_bounds__(kThreads)
    look_up_groups(Rows<const T> table, const int32_t* ids, int64_t row_begin, int64_t table_rows,
                   Rows<T> out, int64_t tokens, int64_t width, bool accumulate, bool wide) {
  each_group(tokens, width, [&](int64_t token, int64_t column) {
    const int64_t id = ids[token] - row_begin;
    const bool held = id >= 0 && id < table_rows;
    T* to = out[token];
    Group<T> group;
    if (held) group = load_group(table[id], column, width, wide);
    if (accumulate) {
      if (!held) return;
      const Group<T> before = load_group(to, column, width, wide);
      float sum[kGroup];
#pragma unroll
      for (int j = 0; j < kGroup; ++j) sum[j] = before[j] + group[j];
      group = Group<T>::of(sum);
    }
    store_group(group, to, column, width, wide);
  });
}

// Sorts tokens by table row with a stable radix sort, least significant digit first. Each pass
// counts the digits of every tile of tokens, turns the counts (digit by digit, within a digit tile
// by tile) into places, and moves the tokens of a tile to them in order. It uses integer additions
// only, so that the result does not depend on the order of execution.

struct SortedTokens {
  const int32_t* rows;    // [tokens] ascending; table_rows for ids that no row belongs to
  const int32_t* tokens;  // [tokens]
};

constexpr int kTile = static_cast<int>(kSortTile);  // a thread for each token
constexpr int kDigits = static_cast<int>(kSortDigits);
constexpr int kTileWarps = kTile / 32;
constexpr int kDigitBits = 9;
static_assert(kDigits == 1 << kDigitBits && kTile == 1024);

struct Pass {
  const int32_t *rows, *tokens;  // what the pass before has left; the first reads ids
  const int32_t* ids;            // null after the first pass
  int64_t count, row_begin, table_rows;
  int shift;

  __device__ __forceinline__ int32_t row_at(int64_t i) const {
    if (ids == nullptr) return rows[i];
    const int64_t row = ids[i] - row_begin;
    return static_cast<int32_t>(row >= 0 && row < table_rows ? row : table_rows);
  }
  __device__ __forceinline__ int digit_of(int32_t row) const {
    return row >> shift & (kDigits - 1);
  }
};

// places[digit, tile] = how often the digit occurs in the tile.
__global__ void __launch_bounds__(kTile) count_digits(Pass pass, int32_t* places) {
  __shared__ int32_t counts[kDigits];
  if (threadIdx.x < kDigits) counts[threadIdx.x] = 0;
  __syncthreads();
  const int64_t i = int64_t{blockIdx.x} * kTile + threadIdx.x;
  if (i < pass.count) atomicAdd(&counts[pass.digit_of(pass.row_at(i))], 1);
  __syncthreads();
  if (threadIdx.x < kDigits) {
    places[int64_t{threadIdx.x} * gridDim.x + blockIdx.x] = counts[threadIdx.x];
  }
}

// Inclusive sum over the lanes of a warp.
__device__ __forceinline__ int32_t scan_warp(int32_t value) {
  for (int offset = 1; offset < 32; offset *= 2) {
    const int32_t below = __shfl_up_sync(kAllLanes, value, offset);
    if (static_cast<int>(threadIdx.x) % 32 >= offset) value += below;
  }
  return value;
}

// Exclusive prefix sum over `places`. One block; `count` is a multiple of kItems.
__global__ void __launch_bounds__(kTile) scan_counts(int32_t* places, int64_t count) {
  constexpr int kItems = 16;  // of a thread at a time
  static_assert(kDigits % kItems == 0 && kTileWarps == 32);
  __shared__ int32_t of_warps[kTileWarps];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int32_t before = 0;
  for (int64_t begin = 0; begin < count; begin += kTile * kItems) {
    const int64_t first = begin + int64_t{threadIdx.x} * kItems;
    int4 items[kItems / 4] = {};
    int32_t own = 0;
    if (first < count) {
#pragma unroll
      for (int i = 0; i < kItems / 4; ++i) {
        items[i] = reinterpret_cast<const int4*>(places + first)[i];
      }
#pragma unroll
      for (int i = 0; i < kItems / 4; ++i) own += items[i].x + items[i].y + items[i].z + items[i].w;
    }
    const int32_t up_to = scan_warp(own);
    if (lane == 31) of_warps[warp] = up_to;
    __syncthreads();
    const int32_t warps = scan_warp(of_warps[lane]);
    const int32_t below = __shfl_sync(kAllLanes, warps, warp == 0 ? 0 : warp - 1);
    int32_t place = before + (warp == 0 ? 0 : below) + up_to - own;
    before += __shfl_sync(kAllLanes, warps, 31);
    if (first < count) {
#pragma unroll
      for (int i = 0; i < kItems / 4; ++i) {
        int4 out;
        out.x = place;
        out.y = out.x + items[i].x;
        out.z = out.y + items[i].y;
        out.w = out.z + items[i].z;
        place = out.w + items[i].w;
        reinterpret_cast<int4*>(places + first)[i] = out;
      }
    }
    __syncthreads();
  }
}

// The place of a token is the number of tokens with smaller digits, plus those with its digit in
// earlier tiles (both in `places`), in earlier warps of its tile, and in earlier lanes of its warp.
__global__ void __launch_bounds__(kTile)
    move_tokens(Pass pass, const int32_t* places, int32_t* rows_out, int32_t* tokens_out) {
  __shared__ uint16_t of_warps[kTileWarps][kDigits];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int w = 0; w < kTileWarps; ++w) {
    if (threadIdx.x < kDigits) of_warps[w][threadIdx.x] = 0;
  }
  __syncthreads();
  const int64_t i = int64_t{blockIdx.x} * kTile + threadIdx.x;
  const bool live = i < pass.count;
  const int32_t row = live ? pass.row_at(i) : 0;
  const int digit = live ? pass.digit_of(row) : kDigits;  // kDigits: no digit at all
  const unsigned same = __match_any_sync(kAllLanes, digit);
  const int rank = __popc(same & ((1u << lane) - 1));
  if (live && rank == 0) of_warps[warp][digit] = static_cast<uint16_t>(__popc(same));
  __syncthreads();
  if (threadIdx.x < kDigits) {
    int before = 0;
    for (int w = 0; w < kTileWarps; ++w) {
      const int count = of_warps[w][threadIdx.x];
      of_warps[w][threadIdx.x] = static_cast<uint16_t>(before);
      before += count;
    }
  }
  __syncthreads();
  if (!live) return;
  const int64_t place =
      places[int64_t{digit} * gridDim.x + blockIdx.x] + of_warps[warp][digit] + rank;
  rows_out[place] = row;
  tokens_out[place] = pass.ids != nullptr ? static_cast<int32_t>(i) : pass.tokens[i];
}

// Stable, hence the same in every run. `memory` has token_sort_bytes(tokens) bytes and holds the
// result.
SortedTokens sort_tokens(Exec& ex, const int32_t* ids, int64_t tokens, int64_t row_begin,
                         int64_t table_rows, std::byte* memory) {
  auto* from = reinterpret_cast<int32_t*>(memory);
  auto* to = from + 2 * tokens;
  auto* places = to + 2 * tokens;
  const auto tiles = static_cast<unsigned>(ceil_div(tokens, kTile));
  const int bits = std::bit_width(static_cast<uint64_t>(table_rows));
  for (int shift = 0; shift == 0 || shift < bits; shift += kDigitBits) {
    const Pass pass{.rows = from,
                    .tokens = from + tokens,
                    .ids = shift == 0 ? ids : nullptr,
                    .count = tokens,
                    .row_begin = row_begin,
                    .table_rows = table_rows,
                    .shift = shift};
    count_digits<<<tiles, kTile, 0, stream_of(ex)>>>(pass, places);
    check_launch("sorting tokens");
    scan_counts<<<1, kTile, 0, stream_of(ex)>>>(places, int64_t{kDigits} * tiles);
    check_launch("sorting tokens");
    move_tokens<<<tiles, kTile, 0, stream_of(ex)>>>(pass, places, to, to + tokens);
    check_launch("sorting tokens");
    std::swap(from, to);
  }
  return {from, from + tokens};
}

// dtable[ids[t] - row_begin] += dout[t]. The tokens are sorted by row; the tokens of one row, its
// run, are added in order. A warp sums a stretch of kEmbeddingPiece sorted tokens over a strip of
// columns, regardless of where runs begin. The partial sums of a run that spans several stretches
// are stored in memory and then added in order.

constexpr int kStrip = 32 * kGroup;  // columns of a warp
constexpr int64_t kPiece = kEmbeddingPiece;
constexpr int kInFlight = 8;  // rows loaded before the first is used
static_assert(32 % kInFlight == 0 && kPiece % 32 == 0);

template <class T, class Sum>
struct Gradient {
  SortedTokens sorted;
  Rows<const T> dout;
  Rows<Sum> dtable;
  int64_t tokens, table_rows, width, strips;
  float* pieces;  // [2 * ceil(tokens / kPiece), width]
  bool wide;

  __device__ __forceinline__ bool in_run(int64_t p, int32_t row) const {
    return p < tokens && sorted.rows[p] == row;
  }
  // A stretch has at most two partial sums of longer runs: of a run that continues from the
  // previous stretch, and of one that begins here and continues in the next.
  __device__ __forceinline__ float* piece(int64_t stretch, bool begins) const {
    return pieces + (2 * stretch + (begins ? 0 : 1)) * width;
  }
  __device__ __forceinline__ void add_to_table(int32_t row, int64_t column,
                                               const float (&sum)[kGroup]) const {
    Sum* to = dtable[row];
    const Group<Sum> before = load_group(to, column, width, wide);
    float after[kGroup];
#pragma unroll
    for (int j = 0; j < kGroup; ++j) after[j] = before[j] + sum[j];
    store_group(Group<Sum>::of(after), to, column, width, wide);
  }
};

template <class T, class Sum>
__global__ void __launch_bounds__(kThreads) sum_runs(Gradient<T, Sum> g) {
  const int lane = threadIdx.x % 32;
  const int64_t warp = (int64_t{blockIdx.x} * kThreads + threadIdx.x) / 32;
  const int64_t stretch = warp / g.strips, begin = stretch * kPiece;
  if (begin >= g.tokens) return;
  const int64_t end = min(g.tokens, begin + kPiece);
  const int64_t column = (warp % g.strips) * kStrip + int64_t{lane} * kGroup;
  const bool live = column < g.width;

  float sum[kGroup] = {};
  int32_t run = g.sorted.rows[begin];  // the row whose tokens are being added
  bool begins = begin == 0 || g.sorted.rows[begin - 1] != run;
  const auto finish = [&](bool ends) {
    if (!live || run >= g.table_rows) return;
    if (begins && ends) {
      g.add_to_table(run, column, sum);
      return;
    }
    float* piece = g.piece(stretch, begins);
#pragma unroll
    for (int j = 0; j < kGroup; ++j) {
      if (column + j < g.width) piece[column + j] = sum[j];
    }
  };
  for (int64_t p = begin; p < end; p += 32) {
    const bool there = p + lane < end;
    const int32_t row = there ? g.sorted.rows[p + lane] : 0;
    const int32_t token = there ? g.sorted.tokens[p + lane] : 0;
    const int count = static_cast<int>(min(int64_t{32}, end - p));
    for (int first = 0; first < count; first += kInFlight) {
      Group<T> group[kInFlight];
#pragma unroll
      for (int i = 0; i < kInFlight; ++i) {
        const int32_t t = __shfl_sync(kAllLanes, token, first + i);
        if (live && first + i < count) {
          group[i] = load_group(g.dout[t], column, g.width, g.wide);
        }
      }
#pragma unroll
      for (int i = 0; i < kInFlight; ++i) {
        if (first + i >= count) break;
        const int32_t next = __shfl_sync(kAllLanes, row, first + i);
        if (next != run) {
          finish(true);
          run = next;
          begins = true;
#pragma unroll
          for (int j = 0; j < kGroup; ++j) sum[j] = 0;
        }
#pragma unroll
        for (int j = 0; j < kGroup; ++j) sum[j] += group[i][j];
      }
    }
  }
  finish(!g.in_run(end, run));
}

// A block per stretch and strip of columns adds up the run that begins in the stretch and continues
// after it, if there is one. Each warp adds a part of the pieces, then the sums of the warps are
// added in order.
template <class T, class Sum>
__global__ void __launch_bounds__(kThreads) add_pieces(Gradient<T, Sum> g) {
  constexpr int kWarps = kThreads / 32;
  __shared__ float shared[kWarps][kStrip];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t stretch = blockIdx.x / g.strips, begin = stretch * kPiece, end = begin + kPiece;
  if (end >= g.tokens) return;
  const int32_t row = g.sorted.rows[end];
  const bool goes_on = g.sorted.rows[end - 1] == row;
  const bool began_before = begin > 0 && g.sorted.rows[begin - 1] == row;
  if (!goes_on || began_before || row >= g.table_rows) return;
  int64_t count = 1;
  for (int more = 32; more == 32; count += more) {
    const bool mine = g.in_run(begin + (count + lane) * kPiece, row);
    more = __popc(__ballot_sync(kAllLanes, mine));
  }
  const int64_t column = (blockIdx.x % g.strips) * kStrip + int64_t{lane} * kGroup;
  const int64_t each = ceil_div(count, kWarps);
  float sum[kGroup] = {};
#pragma unroll 4
  for (int64_t i = warp * each; i < min(count, (warp + 1) * each); ++i) {
    const float* piece = g.piece(stretch + i, i == 0);
#pragma unroll
    for (int j = 0; j < kGroup; ++j) sum[j] += column + j < g.width ? piece[column + j] : 0.0f;
  }
#pragma unroll
  for (int j = 0; j < kGroup; ++j) shared[warp][lane * kGroup + j] = sum[j];
  __syncthreads();
  if (warp != 0 || column >= g.width) return;
  for (int w = 1; w < kWarps; ++w) {
#pragma unroll
    for (int j = 0; j < kGroup; ++j) sum[j] += shared[w][lane * kGroup + j];
  }
  g.add_to_table(row, column, sum);
}

template <class T, class Sum>
void launch(Exec& ex, const ops::EmbeddingBackward& e) {
  const int64_t tokens = e.dout.rows(), width = width_of(e.dout);
  ArenaScope scope(ex.scratch);
  const Tensor workspace = workspace_of(ex, e, "tokens by row");
  Gradient<T, Sum> g{.sorted = sort_tokens(ex, data_of<int32_t>(e.ids), tokens, e.row_begin,
                                           e.dtable.rows(), workspace.data),
                     .dout = Rows<const T>(e.dout),
                     .dtable = Rows<Sum>(e.dtable),
                     .tokens = tokens,
                     .table_rows = e.dtable.rows(),
                     .width = width,
                     .strips = ceil_div(width, kStrip),
                     .pieces = reinterpret_cast<float*>(workspace.data + token_sort_bytes(tokens)),
                     .wide = are_wide(e.dout, e.dtable)};
  const int64_t stretches = ceil_div(tokens, kPiece) * g.strips;
  const auto blocks = static_cast<unsigned>(ceil_div(stretches * 32, kThreads));
  sum_runs<<<blocks, kThreads, 0, stream_of(ex)>>>(g);
  check_launch("embedding_backward");
  if (tokens > kPiece) {
    add_pieces<<<static_cast<unsigned>(stretches), kThreads, 0, stream_of(ex)>>>(g);
    check_launch("embedding_backward");
  }
}

}  // namespace

void embedding(Exec& ex, const ops::Embedding& e) {
  const int64_t tokens = e.out.rows(), width = width_of(e.out);
  if (tokens * width == 0) return;
  const unsigned blocks = blocks_for(ex, tokens * ceil_div(width, kGroup), kThreads);
  visit_cuda(e.table.dtype, "embedding", [&]<class T>() {
    look_up_groups<T><<<blocks, kThreads, 0, stream_of(ex)>>>(
        Rows<const T>(e.table), data_of<int32_t>(e.ids), e.row_begin, e.table.rows(),
        Rows<T>(e.out), tokens, width, e.accumulate, are_wide(e.table, e.out));
  });
  check_launch("embedding");
}

void embedding_backward(Exec& ex, const ops::EmbeddingBackward& e) {
  if (e.dout.shape.elements() == 0 || e.dtable.rows() == 0) return;
  visit_cuda(e.dout.dtype, "embedding_backward", [&]<class T>() {
    if (e.dtable.dtype == DType::f32) {
      launch<T, float>(ex, e);
    } else {
      launch<T, T>(ex, e);
    }
  });
}

}  // namespace bev::cuda
