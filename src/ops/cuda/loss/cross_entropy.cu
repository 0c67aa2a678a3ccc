#include "ops/cross_entropy.h"
#include "ops/cuda/loss/loss_rows.cuh"
#include "ops/op_table.h"

namespace bev::cuda {

namespace {

constexpr int kMostThreads = 512, kMostWarps = kMostThreads / 32;
constexpr int kInFlight = 4;  // groups a thread has asked for before it uses the first

// A block for each row: smaller where the row is short.
int threads_for(int64_t columns) { return columns > 4096 ? kMostThreads : 128; }

using Sums = RowSums<NaturalExp>;

__device__ __forceinline__ Sums from_lane(const Sums& sums, int offset) {
  Sums other;
  other.max = __shfl_down_sync(kAllLanes, sums.max, offset);
  other.sum_exp = __shfl_down_sync(kAllLanes, sums.sum_exp, offset);
  other.sum = __shfl_down_sync(kAllLanes, sums.sum, offset);
  return other;
}

template <class T>
__global__ void __launch_bounds__(kMostThreads)
    row_stats(Rows<const T> logits, const int32_t* targets, int64_t columns, int64_t column_begin,
              Rows<float> stats) {
  __shared__ float3 shared[kMostWarps];
  const int64_t row = blockIdx.x;
  const T* x = logits[row];
  const Parts<T> parts(x, columns);
  const auto* groups = reinterpret_cast<const Group<T>*>(x + parts.lead);
  Sums sums;
  int64_t g = threadIdx.x;
  for (; g + (kInFlight - 1) * int64_t{blockDim.x} < parts.groups;
       g += kInFlight * int64_t{blockDim.x}) {
    Group<T> group[kInFlight];
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) group[i] = groups[g + i * int64_t{blockDim.x}];
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) sums.add(group[i]);
  }
  for (; g < parts.groups; g += blockDim.x) sums.add(groups[g]);
  parts.each_single([&](int64_t column) { sums.add(to_float(x[column])); });

  for (int offset = 16; offset > 0; offset /= 2) sums.add(from_lane(sums, offset));
  const int warp = threadIdx.x / 32;
  if (threadIdx.x % 32 == 0) shared[warp] = {sums.max, sums.sum_exp, sums.sum};
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int w = 1; w < static_cast<int>(blockDim.x) / 32; ++w) {
    Sums other;
    other.max = shared[w].x;
    other.sum_exp = shared[w].y;
    other.sum = shared[w].z;
    sums.add(other);
  }
  const int64_t column = target_column(targets[row], column_begin, columns);
  float* out = stats[row];
  out[ops::kStatMax] = sums.max;
  out[ops::kStatSumExp] = sums.sum_exp;
  out[ops::kStatTarget] = column >= 0 ? to_float(x[column]) : 0.0f;
  out[ops::kStatSum] = sums.sum;
}

// The gradient of a row: dlogit = factor * exp(logit - lse) - offset, and at the target what was
// computed apart, because its terms cancel where the model is sure.
struct RowGradient {
  float lse, factor, offset, at_target;
};

// log(sum exp) and what follows from it, in f64: one thread for a row.
__device__ RowGradient finish_row(const LossTerms& t, const float* stats, int64_t row,
                                  float* loss) {
  const double log_sum = log(static_cast<double>(stats[ops::kStatSumExp]));
  const double lse = static_cast<double>(stats[ops::kStatMax]) + log_sum;
  const auto target_logit = static_cast<double>(stats[ops::kStatTarget]);
  *loss = row_loss(t, t.targets[row], lse, target_logit, static_cast<double>(stats[ops::kStatSum]));
  const double scale = static_cast<double>(t.weight[row]) * gradient_scale(t);
  const double factor = scale * (1 + 2 * t.z_loss * lse);
  const double offset = scale * t.smoothing / t.classes;
  const double at_target = factor * exp(target_logit - lse) - offset - scale * (1 - t.smoothing);
  return {static_cast<float>(lse), static_cast<float>(factor), static_cast<float>(offset),
          static_cast<float>(at_target)};
}

__global__ void __launch_bounds__(kMostThreads)
    row_losses(Rows<const float> stats, int64_t rows, LossTerms terms, float* loss) {
  const int64_t row = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (row < rows) finish_row(terms, stats[row], row, loss + row);
}

// dlogits may be logits: every element is read and written by one thread, and the target's logit
// comes from the statistics. `alike`: both rows are aligned alike.
template <class T>
__global__ void __launch_bounds__(kMostThreads)
    row_gradients(Rows<const T> logits, Rows<const float> stats, Rows<T> dlogits, LossTerms terms,
                  float* loss, bool alike) {
  __shared__ RowGradient shared;
  const int64_t row = blockIdx.x;
  if (threadIdx.x == 0) shared = finish_row(terms, stats[row], row, loss + row);
  __syncthreads();
  const RowGradient gradient = shared;
  const T* x = logits[row];
  T* dx = dlogits[row];
  const int32_t target_class = terms.targets[row];
  const bool counts = target_class >= 0;
  const int64_t target = target_column(target_class, terms.column_begin, terms.columns);
  const auto slope = [&](float logit, int64_t column) {
    const float p = __expf(logit - gradient.lse);
    const float d = column == target ? gradient.at_target : gradient.factor * p - gradient.offset;
    return counts ? d : 0.0f;
  };
  const Parts<T> parts(x, terms.columns);
  const auto* groups = reinterpret_cast<const Group<T>*>(x + parts.lead);
  const auto step = int64_t{blockDim.x};
  for (int64_t first = threadIdx.x; first < parts.groups; first += kInFlight * step) {
    Group<T> group[kInFlight];
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      if (first + i * step < parts.groups) group[i] = groups[first + i * step];
    }
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      const int64_t g = first + i * step, column = parts.lead + g * kGroup;
      if (g >= parts.groups) break;
      float d[kGroup];
#pragma unroll
      for (int j = 0; j < kGroup; ++j) d[j] = slope(group[i][j], column + j);
      store_group(Group<T>::of(d), dx, column, terms.columns, alike);
    }
  }
  parts.each_single(
      [&](int64_t column) { dx[column] = from_float<T>(slope(to_float(x[column]), column)); });
}

// A thread for each row.
__global__ void __launch_bounds__(kMostThreads)
    merge_row_stats(Rows<const float> parts, int64_t rows, int64_t ranks, Rows<float> stats) {
  const int64_t r = int64_t{blockIdx.x} * kMostThreads + threadIdx.x;
  if (r >= rows) return;
  Sums whole;
  float target = 0;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const float* part = parts[rank * rows + r];
    whole.add(Sums{part[ops::kStatMax], part[ops::kStatSumExp], part[ops::kStatSum]});
    target += part[ops::kStatTarget];
  }
  float* to = stats[r];
  to[ops::kStatMax] = whole.max;
  to[ops::kStatSumExp] = whole.sum_exp;
  to[ops::kStatTarget] = target;
  to[ops::kStatSum] = whole.sum;
}

}  // namespace

void merge_softmax_stats(Exec& ex, const ops::MergeSoftmaxStats& m) {
  const int64_t rows = m.stats.rows(), ranks = m.parts.rows() / rows;
  merge_row_stats<<<static_cast<unsigned>(ceil_div(rows, kMostThreads)), kMostThreads, 0,
                    stream_of(ex)>>>(Rows<const float>(m.parts), rows, ranks, Rows<float>(m.stats));
  check_launch("merge_softmax_stats");
}

void softmax_stats(Exec& ex, const ops::SoftmaxStats& s) {
  const int64_t rows = s.logits.rows(), columns = width_of(s.logits);
  if (rows == 0) return;
  visit_cuda(s.logits.dtype, "softmax_stats", [&]<class T>() {
    row_stats<T><<<static_cast<unsigned>(rows), threads_for(columns), 0, stream_of(ex)>>>(
        Rows<const T>(s.logits), data_of<int32_t>(s.targets), columns, s.column_begin,
        Rows<float>(s.stats));
  });
  check_launch("softmax_stats");
}

void cross_entropy(Exec& ex, const ops::CrossEntropy& c) {
  const int64_t rows = c.logits.rows(), columns = width_of(c.logits);
  if (rows == 0) return;
  if (!c.stats.present()) return cross_entropy_full_rows(ex, c);
  const LossTerms terms = loss_terms(c);
  auto* loss = data_of<float>(c.loss);
  const Rows<const float> stats{ConstTensor(c.stats)};
  if (!c.dlogits.present()) {
    const auto blocks = static_cast<unsigned>(ceil_div(rows, kMostThreads));
    row_losses<<<blocks, kMostThreads, 0, stream_of(ex)>>>(stats, rows, terms, loss);
  } else {
    visit_cuda(c.logits.dtype, "cross_entropy", [&]<class T>() {
      row_gradients<T><<<static_cast<unsigned>(rows), threads_for(columns), 0, stream_of(ex)>>>(
          Rows<const T>(c.logits), stats, Rows<T>(c.dlogits), terms, loss,
          are_alike(c.logits, c.dlogits));
    });
  }
  check_launch("cross_entropy");
}

namespace {

// A warp for each row.
template <class T>
__global__ void __launch_bounds__(32)
    row_hits(Rows<const T> logits, const int32_t* targets, int64_t columns, int64_t k, float value,
             float* hits) {
  const int64_t row = blockIdx.x;
  const T* x = logits[row];
  const int64_t target = targets[row];
  const float own = to_float(x[target]);
  int larger = 0;
  for (int64_t c = threadIdx.x; c < columns; c += 32) {
    const float logit = to_float(x[c]);
    larger += logit > own || (logit == own && c < target) ? 1 : 0;
  }
  for (int offset = 16; offset > 0; offset /= 2)
    larger += __shfl_down_sync(kAllLanes, larger, offset);
  if (threadIdx.x == 0) hits[row] = larger < k ? value : 0.0f;
}

}  // namespace

void top_k_hits(Exec& ex, const ops::TopKHits& t) {
  const int64_t rows = t.logits.rows(), columns = width_of(t.logits);
  if (rows == 0) return;
  visit_cuda(t.logits.dtype, "top_k_hits", [&]<class T>() {
    row_hits<T><<<static_cast<unsigned>(rows), 32, 0, stream_of(ex)>>>(
        Rows<const T>(t.logits), data_of<int32_t>(t.targets), columns, t.k,
        static_cast<float>(t.value), data_of<float>(t.hits));
  });
  check_launch("top_k_hits");
}

}  // namespace bev::cuda
