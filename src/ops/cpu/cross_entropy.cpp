#include "ops/cross_entropy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "ops/cpu/kernels/kernels.h"
#include "ops/cpu/parallel_loops.h"
#include "ops/op_table.h"
#include "tensor/dtype_dispatch.h"

namespace bev::cpu {

namespace {

// The column of a row's target, or -1 when it is held elsewhere or there is none.
int64_t target_column(int32_t target, int64_t column_begin, int64_t columns) {
  const int64_t column = target - column_begin;
  return target >= 0 && column >= 0 && column < columns ? column : -1;
}

using RowStats = std::array<float, ops::kSoftmaxStats>;

template <class T>
RowStats stats_of(const T* logits, int64_t columns, int32_t target, int64_t column_begin) {
  const SoftmaxSums sums = kernels_of<T>().softmax_sums(logits, columns);
  const int64_t column = target_column(target, column_begin, columns);
  RowStats stats{};
  stats[ops::kStatMax] = sums.max;
  stats[ops::kStatSumExp] = static_cast<float>(sums.sum_exp);
  stats[ops::kStatTarget] = column >= 0 ? static_cast<float>(logits[column]) : 0.0f;
  stats[ops::kStatSum] = static_cast<float>(sums.sum);
  return stats;
}

RowStats given(const float* all) {
  RowStats stats{};
  std::copy_n(all, stats.size(), stats.begin());
  return stats;
}

template <class T>
void write_gradient(const ops::CrossEntropy& c, const T* logits, T* dlogits, int64_t row,
                    double lse) {
  const int64_t columns = c.logits.shape[1];
  const int32_t target = reinterpret_cast<const int32_t*>(c.targets.data)[row];
  if (target < 0) {
    std::memset(static_cast<void*>(dlogits), 0, static_cast<size_t>(columns) * sizeof(T));
    return;
  }
  const auto weight = static_cast<double>(reinterpret_cast<const float*>(c.weight.data)[row]);
  const double grad_scale =
      c.grad_scale.present() ? *reinterpret_cast<const double*>(c.grad_scale.data) : 1;
  const double scale = weight * grad_scale;
  const double factor = scale * (1 + 2 * c.z_loss * lse);
  const double offset = scale * c.smoothing / static_cast<double>(c.classes);
  const int64_t column = target_column(target, c.column_begin, columns);
  // Read first: dlogits may be logits.
  const double target_logit = column >= 0 ? static_cast<double>(logits[column]) : 0;
  kernels_of<T>().softmax_gradient({.logits = logits,
                                    .dlogits = dlogits,
                                    .columns = columns,
                                    .lse = static_cast<float>(lse),
                                    .factor = static_cast<float>(factor),
                                    .offset = static_cast<float>(offset)});
  if (column >= 0) {
    const double slope = factor * std::exp(target_logit - lse) - offset - scale * (1 - c.smoothing);
    dlogits[column] = T(static_cast<float>(slope));
  }
}

}  // namespace

void softmax_stats(Exec& ex, const ops::SoftmaxStats& s) {
  visit_cpu(s.logits.dtype, "softmax_stats", [&]<class T>() {
    const RowsOf<const T> logits(s.logits);
    const RowsOf<float> stats(s.stats);
    const auto* targets = reinterpret_cast<const int32_t*>(s.targets.data);
    const int64_t columns = width_of(s.logits);
    threads_of(ex).split(logits.count(), grain_rows(columns), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const RowStats row = stats_of(logits[r], columns, targets[r], s.column_begin);
        std::copy(row.begin(), row.end(), stats[r]);
      }
    });
  });
}

void merge_softmax_stats(Exec&, const ops::MergeSoftmaxStats& m) {
  const int64_t rows = m.stats.rows(), ranks = m.parts.rows() / rows;
  const RowsOf<const float> parts(m.parts);
  const RowsOf<float> stats(m.stats);
  for (int64_t r = 0; r < rows; ++r) {
    float max = parts[r][ops::kStatMax];
    for (int64_t rank = 1; rank < ranks; ++rank)
      max = std::max(max, parts[rank * rows + r][ops::kStatMax]);
    float sum_exp = 0, target = 0, sum = 0;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const float* part = parts[rank * rows + r];
      sum_exp += part[ops::kStatSumExp] * std::exp(part[ops::kStatMax] - max);
      target += part[ops::kStatTarget];
      sum += part[ops::kStatSum];
    }
    float* whole = stats[r];
    whole[ops::kStatMax] = max;
    whole[ops::kStatSumExp] = sum_exp;
    whole[ops::kStatTarget] = target;
    whole[ops::kStatSum] = sum;
  }
}

void cross_entropy(Exec& ex, const ops::CrossEntropy& c) {
  visit_cpu(c.logits.dtype, "cross_entropy", [&]<class T>() {
    const RowsOf<const T> logits(c.logits);
    const RowsOf<const float> stats(c.stats);
    const RowsOf<T> dlogits(c.dlogits);
    const auto* targets = reinterpret_cast<const int32_t*>(c.targets.data);
    auto* loss = reinterpret_cast<float*>(c.loss.data);
    const int64_t columns = width_of(c.logits);
    const bool given_stats = c.stats.present();
    const int64_t grain = grain_rows(given_stats && !c.dlogits.present() ? 1 : columns);
    threads_of(ex).split(logits.count(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const RowStats row =
            given_stats ? given(stats[r]) : stats_of(logits[r], columns, targets[r], 0);
        const auto stat = [&](size_t which) { return static_cast<double>(row[which]); };
        const double lse = stat(ops::kStatMax) + std::log(stat(ops::kStatSumExp));
        const double mean_logit = stat(ops::kStatSum) / static_cast<double>(c.classes);
        const double value = (1 - c.smoothing) * (lse - stat(ops::kStatTarget)) +
                             c.smoothing * (lse - mean_logit) + c.z_loss * lse * lse;
        loss[r] = targets[r] >= 0 ? static_cast<float>(value) : 0.0f;
        if (c.dlogits.present()) write_gradient<T>(c, logits[r], dlogits[r], r, lse);
      }
    });
  });
}

void top_k_hits(Exec& ex, const ops::TopKHits& t) {
  visit_cpu(t.logits.dtype, "top_k_hits", [&]<class T>() {
    const RowsOf<const T> logits(t.logits);
    const auto* targets = reinterpret_cast<const int32_t*>(t.targets.data);
    auto* hits = reinterpret_cast<float*>(t.hits.data);
    const int64_t columns = width_of(t.logits);
    threads_of(ex).split(logits.count(), grain_rows(columns), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const int64_t target = targets[r];
        const auto own = static_cast<float>(logits[r][target]);
        int64_t larger = 0;
        for (int64_t c = 0; c < columns; ++c) {
          const auto logit = static_cast<float>(logits[r][c]);
          larger += logit > own || (logit == own && c < target) ? 1 : 0;
        }
        hits[r] = larger < t.k ? static_cast<float>(t.value) : 0.0f;
      }
    });
  });
}

}  // namespace bev::cpu
