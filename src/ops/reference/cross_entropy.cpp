#include "ops/cross_entropy.h"

#include <array>
#include <cmath>

#include "ops/op_table.h"
#include "ops/reference/element.h"

namespace bev::reference {

namespace {

using RowStats = std::array<double, ops::kSoftmaxStats>;

RowStats stats_of(const ConstTensor& logits, int64_t r, int64_t target, int64_t column_begin) {
  const int64_t columns = logits.shape[1];
  double max = at(logits, r, 0);
  for (int64_t c = 1; c < columns; ++c) max = std::max(max, at(logits, r, c));
  double sum_exp = 0, sum = 0;
  for (int64_t c = 0; c < columns; ++c) {
    sum_exp += std::exp(at(logits, r, c) - max);
    sum += at(logits, r, c);
  }
  const int64_t column = target - column_begin;
  const bool held = target >= 0 && column >= 0 && column < columns;
  RowStats stats{};
  stats[ops::kStatMax] = max;
  stats[ops::kStatSumExp] = sum_exp;
  stats[ops::kStatTarget] = held ? at(logits, r, column) : 0;
  stats[ops::kStatSum] = sum;
  return stats;
}

RowStats given(const ConstTensor& all, int64_t r) {
  RowStats stats{};
  for (size_t s = 0; s < stats.size(); ++s) stats[s] = at(all, r, static_cast<int64_t>(s));
  return stats;
}

}  // namespace

void softmax_stats(Exec&, const ops::SoftmaxStats& s) {
  require_f64("softmax_stats", s.logits.dtype);
  for (int64_t r = 0; r < s.logits.rows(); ++r) {
    const RowStats row = stats_of(s.logits, r, element<int32_t>(s.targets, r), s.column_begin);
    for (size_t i = 0; i < row.size(); ++i) at(s.stats, r, static_cast<int64_t>(i)) = row[i];
  }
}

void merge_softmax_stats(Exec&, const ops::MergeSoftmaxStats& m) {
  require_f64("merge_softmax_stats", m.stats.dtype);
  const int64_t rows = m.stats.rows(), ranks = m.parts.rows() / rows;
  for (int64_t r = 0; r < rows; ++r) {
    RowStats whole = given(m.parts, r);
    for (int64_t rank = 1; rank < ranks; ++rank) {
      const double max = at(m.parts, rank * rows + r, ops::kStatMax);
      whole[ops::kStatMax] = std::max(whole[ops::kStatMax], max);
    }
    whole[ops::kStatSumExp] = whole[ops::kStatTarget] = whole[ops::kStatSum] = 0;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const RowStats part = given(m.parts, rank * rows + r);
      whole[ops::kStatSumExp] +=
          part[ops::kStatSumExp] * std::exp(part[ops::kStatMax] - whole[ops::kStatMax]);
      whole[ops::kStatTarget] += part[ops::kStatTarget];
      whole[ops::kStatSum] += part[ops::kStatSum];
    }
    for (size_t i = 0; i < whole.size(); ++i) at(m.stats, r, static_cast<int64_t>(i)) = whole[i];
  }
}

void cross_entropy(Exec&, const ops::CrossEntropy& e) {
  require_f64("cross_entropy", e.logits.dtype);
  const auto classes = static_cast<double>(e.classes);
  for (int64_t r = 0; r < e.logits.rows(); ++r) {
    const int64_t target = element<int32_t>(e.targets, r);
    const bool counts = target >= 0;
    const RowStats stats = e.stats.present() ? given(e.stats, r) : stats_of(e.logits, r, target, 0);
    const double lse = stats[ops::kStatMax] + std::log(stats[ops::kStatSumExp]);
    const double target_logit = stats[ops::kStatTarget];
    const double mean_logit = stats[ops::kStatSum] / classes;
    const double loss = (1 - e.smoothing) * (lse - target_logit) +
                        e.smoothing * (lse - mean_logit) + e.z_loss * lse * lse;
    at(e.loss, r) = counts ? loss : 0;
    if (!e.dlogits.present()) continue;
    const double grad_scale = e.grad_scale.present() ? at(e.grad_scale, int64_t{0}) : 1;
    const double scale = grad_scale * static_cast<double>(element<float>(e.weight, r));
    for (int64_t c = 0; c < e.logits.shape[1]; ++c) {
      const double p = std::exp(at(e.logits, r, c) - lse);
      const double hit = e.column_begin + c == target ? 1 : 0;
      const double slope =
          p * (1 + 2 * e.z_loss * lse) - (1 - e.smoothing) * hit - e.smoothing / classes;
      at(e.dlogits, r, c) = counts ? scale * slope : 0;
    }
  }
}

void top_k_hits(Exec&, const ops::TopKHits& t) {
  require_f64("top_k_hits", t.logits.dtype);
  for (int64_t r = 0; r < t.logits.rows(); ++r) {
    const int64_t target = element<int32_t>(t.targets, r);
    const double own = at(t.logits, r, target);
    int64_t larger = 0;
    for (int64_t c = 0; c < t.logits.shape[1]; ++c) {
      const double logit = at(t.logits, r, c);
      larger += logit > own || (logit == own && c < target) ? 1 : 0;
    }
    at(t.hits, r) = larger < t.k ? t.value : 0;
  }
}

}  // namespace bev::reference
