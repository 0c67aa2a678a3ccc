// dtable[ids[t] - row_begin] += dout[t]. The tokens are sorted by row; those of one row, its run,
// are added in order. A warp takes kEmbeddingPiece sorted tokens and a strip of columns, whatever
// the runs: the sums of a run that lies in several such stretches go through memory and are then
// added in order.
#include "ops/cuda/embedding/sort_tokens.h"
#include "ops/cuda/primitives/vector_rows.cuh"
#include "ops/embedding.h"
#include "ops/op_table.h"

namespace bev::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kStrip = 32 * kGroup;  // columns of a warp
constexpr int64_t kPiece = kEmbeddingPiece;
constexpr int kInFlight = 8;  // rows asked for before the first is used
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
  // In one stretch lie two parts of longer runs at most: that of a run that goes on from the
  // stretch before, and that of one that begins here and goes on.
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

// A block for every stretch and strip of columns adds up the run that begins in the stretch and
// goes on after it, where there is one: each warp a part of the pieces, then the warps in order.
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
