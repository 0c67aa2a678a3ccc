#include "ops/norm.h"

#include <cmath>

#include "ops/op_table.h"
#include "ops/reference/element.h"

namespace bev::reference {

void norm(Exec&, const ops::Norm& n) {
  require_f64("norm", n.x.dtype);
  const int64_t width = width_of(n.x.shape);
  const auto count = static_cast<double>(width);
  for (int64_t r = 0; r < row_count(n.x.shape); ++r) {
    const ConstTensor x = row(n.x, r);
    const Tensor y = row(n.y, r);
    double mean = 0;
    if (n.kind == NormKind::LayerNorm) {
      for (int64_t c = 0; c < width; ++c) mean += at(x, c) / count;
      at(n.mean, r) = mean;
    }
    double variance = 0;
    for (int64_t c = 0; c < width; ++c) variance += (at(x, c) - mean) * (at(x, c) - mean) / count;
    const double rstd = 1 / std::sqrt(variance + n.eps);
    at(n.rstd, r) = rstd;
    for (int64_t c = 0; c < width; ++c) {
      const double scaled = (at(x, c) - mean) * rstd * at(n.weight, c);
      at(y, c) = n.bias.present() ? scaled + at(n.bias, c) : scaled;
    }
  }
}

void residual_norm(Exec& ex, const ops::ResidualNorm& n) {
  require_f64("residual_norm", n.residual.dtype);
  residual_add(ex, {.residual = n.residual, .delta = n.delta, .dropout = n.dropout, .out = n.sum});
  norm(ex, {.kind = n.kind,
            .x = n.sum,
            .weight = n.weight,
            .bias = n.bias,
            .eps = n.eps,
            .y = n.y,
            .mean = n.mean,
            .rstd = n.rstd});
}

void norm_backward(Exec&, const ops::NormBackward& n) {
  require_f64("norm_backward", n.x.dtype);
  const int64_t width = width_of(n.x.shape);
  const auto count = static_cast<double>(width);
  const bool centred = n.kind == NormKind::LayerNorm;
  for (int64_t r = 0; r < row_count(n.x.shape); ++r) {
    const ConstTensor x = row(n.x, r);
    const ConstTensor dy = row(n.dy, r);
    const Tensor dx = row(n.dx, r);
    const double rstd = at(n.rstd, r);
    const double mean = centred ? at(n.mean, r) : 0;
    double mean_g = 0, mean_g_xhat = 0;
    for (int64_t c = 0; c < width; ++c) {
      const double xhat = (at(x, c) - mean) * rstd;
      const double g = at(dy, c) * at(n.weight, c);
      if (centred) mean_g += g / count;
      mean_g_xhat += g * xhat / count;
      at(n.dweight, c) += at(dy, c) * xhat;
      if (n.dbias.present()) at(n.dbias, c) += at(dy, c);
    }
    for (int64_t c = 0; c < width; ++c) {
      const double xhat = (at(x, c) - mean) * rstd;
      const double g = at(dy, c) * at(n.weight, c);
      const double residual = n.dresidual.present() ? at(n.dresidual, r, c) : 0;
      at(dx, c) = rstd * (g - mean_g - xhat * mean_g_xhat) + residual;
      if (n.dx_sums.present()) at(n.dx_sums, c) += at(dx, c);
    }
  }
}

}  // namespace bev::reference
