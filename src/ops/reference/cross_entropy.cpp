#include "ops/cross_entropy.h"

#include <cmath>

#include "ops/reference/at.h"
#include "ops/reference/ops.h"

namespace bev::reference {

void softmax_stats(Exec&, const ops::SoftmaxStats& s) {
  require_f64("softmax_stats", s.logits.dtype);
  const int64_t columns = s.logits.shape[1];
  for (int64_t r = 0; r < s.logits.rows(); ++r) {
    double max = at(s.logits, r, 0);
    for (int64_t c = 1; c < columns; ++c) max = std::max(max, at(s.logits, r, c));
    double sum_exp = 0, sum = 0;
    for (int64_t c = 0; c < columns; ++c) {
      sum_exp += std::exp(at(s.logits, r, c) - max);
      sum += at(s.logits, r, c);
    }
    const int64_t target = element<int32_t>(s.targets, r);
    const int64_t column = target - s.column_begin;
    const bool held = target >= 0 && column >= 0 && column < columns;
    at(s.stats, r, int64_t{ops::kStatMax}) = max;
    at(s.stats, r, int64_t{ops::kStatSumExp}) = sum_exp;
    at(s.stats, r, int64_t{ops::kStatTarget}) = held ? at(s.logits, r, column) : 0;
    at(s.stats, r, int64_t{ops::kStatSum}) = sum;
  }
}

void cross_entropy(Exec&, const ops::CrossEntropy& e) {
  require_f64("cross_entropy", e.logits.dtype);
  const auto classes = static_cast<double>(e.classes);
  for (int64_t r = 0; r < e.logits.rows(); ++r) {
    const int64_t target = element<int32_t>(e.targets, r);
    const bool counts = target >= 0;
    const double lse = at(e.stats, r, int64_t{ops::kStatMax}) +
                       std::log(at(e.stats, r, int64_t{ops::kStatSumExp}));
    const double target_logit = at(e.stats, r, int64_t{ops::kStatTarget});
    const double mean_logit = at(e.stats, r, int64_t{ops::kStatSum}) / classes;
    const double loss = (1 - e.smoothing) * (lse - target_logit) +
                        e.smoothing * (lse - mean_logit) + e.z_loss * lse * lse;
    at(e.loss, r) = counts ? loss : 0;
    if (!e.dlogits.present()) continue;
    const double loss_scale = e.loss_scale.present() ? at(e.loss_scale, int64_t{0}) : 1;
    const double scale =
        e.grad_scale * loss_scale * static_cast<double>(element<float>(e.weight, r));
    for (int64_t c = 0; c < e.logits.shape[1]; ++c) {
      const double p = std::exp(at(e.logits, r, c) - lse);
      const double hit = e.column_begin + c == target ? 1 : 0;
      const double slope =
          p * (1 + 2 * e.z_loss * lse) - (1 - e.smoothing) * hit - e.smoothing / classes;
      at(e.dlogits, r, c) = counts ? scale * slope : 0;
    }
  }
}

}  // namespace bev::reference
