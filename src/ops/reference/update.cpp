#include "ops/update.h"

#include <algorithm>
#include <cmath>

#include "ops/reference/at.h"
#include "ops/reference/ops.h"

namespace bev::reference {

namespace {

constexpr int64_t kFactor = 0, kApplied = 1;  // the entries of control

}  // namespace

void update_control(Exec&, const ops::UpdateControl& u) {
  const double norm = std::sqrt(at(u.norm_squared, int64_t{0})) * u.grad_multiplier;
  const bool finite = std::isfinite(norm);
  const double clip = u.max_norm > 0 ? std::min(1.0, u.max_norm / (norm + 1e-6)) : 1;
  at(u.control, kFactor) = finite ? u.grad_multiplier * clip : 0;
  at(u.control, kApplied) = finite ? 1 : 0;
}

void adamw(Exec&, const ops::AdamW& a) {
  require_f64("adamw", a.param.dtype);
  if (at(a.control, kApplied) == 0) return;
  const double correction1 = 1 - std::pow(a.beta1, static_cast<double>(a.step));
  const double correction2 = 1 - std::pow(a.beta2, static_cast<double>(a.step));
  const Tensor& weights = a.master.present() ? a.master : a.param;
  for (int64_t i = 0; i < a.param.shape[0]; ++i) {
    const double g = at(a.control, kFactor) * at(a.grad, i);
    double& m = at(a.m, i);
    double& v = at(a.v, i);
    double& p = at(weights, i);
    m = a.beta1 * m + (1 - a.beta1) * g;
    v = a.beta2 * v + (1 - a.beta2) * g * g;
    p -= a.lr * (m / correction1 / (std::sqrt(v / correction2) + a.eps) + a.weight_decay * p);
    at(a.param, i) = p;
  }
}

void sgd(Exec&, const ops::Sgd& s) {
  require_f64("sgd", s.param.dtype);
  if (at(s.control, kApplied) == 0) return;
  const Tensor& weights = s.master.present() ? s.master : s.param;
  for (int64_t i = 0; i < s.param.shape[0]; ++i) {
    double& p = at(weights, i);
    double& buffer = at(s.buffer, i);
    const double d = at(s.control, kFactor) * at(s.grad, i) + s.weight_decay * p;
    buffer = s.step == 1 ? d : s.momentum * buffer + d;
    p -= s.lr * buffer;
    at(s.param, i) = p;
  }
}

}  // namespace bev::reference
