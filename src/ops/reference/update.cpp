#include "ops/update.h"

#include <algorithm>
#include <cmath>

#include "ops/op_table.h"
#include "ops/reference/element.h"

namespace bev::reference {

namespace {

double decided(const ConstTensor& decision, UpdateDecision which) {
  return at(decision, static_cast<int64_t>(which));
}

}  // namespace

void loss_factors(Exec&, const ops::LossFactors& f) {
  const double scale = f.loss_scale.present() ? at(f.loss_scale, int64_t{0}) : 1;
  for (int64_t i = 0; i < f.counts.shape[0]; ++i)
    at(f.out, i) = f.weights[static_cast<size_t>(i)] * scale / std::max(at(f.counts, i), 1.0);
}

void decide_update(Exec&, const ops::DecideUpdate& u) {
  bev::decide_update(at(u.norm_squared, int64_t{0}), reinterpret_cast<const double*>(u.loss.data),
                     u.rule, &at(u.state, int64_t{0}), &at(u.decision, int64_t{0}));
}

void adamw(Exec&, const ops::AdamW& a) {
  require_f64("adamw", a.param.dtype);
  if (decided(a.decision, kApplied) == 0) return;
  const double rate = decided(a.decision, kRate);
  const double decay = a.decays ? decided(a.decision, kWeightDecay) : 0;
  const double correction1 = 1 - std::pow(a.beta1, decided(a.decision, kStepNumber));
  const double correction2 = 1 - std::pow(a.beta2, decided(a.decision, kStepNumber));
  const Tensor& weights = a.master.present() ? a.master : a.param;
  for (int64_t i = 0; i < a.param.shape[0]; ++i) {
    const double g = decided(a.decision, kFactor) * at(a.grad, i);
    double& m = at(a.m, i);
    double& v = at(a.v, i);
    double& p = at(weights, i);
    m = a.beta1 * m + (1 - a.beta1) * g;
    v = a.beta2 * v + (1 - a.beta2) * g * g;
    p -= rate * (m / correction1 / (std::sqrt(v / correction2) + a.eps) + decay * p);
    at(a.param, i) = p;
  }
}

void sgd(Exec&, const ops::Sgd& s) {
  require_f64("sgd", s.param.dtype);
  if (decided(s.decision, kApplied) == 0) return;
  const double decay = s.decays ? decided(s.decision, kWeightDecay) : 0;
  const Tensor& weights = s.master.present() ? s.master : s.param;
  for (int64_t i = 0; i < s.param.shape[0]; ++i) {
    double& p = at(weights, i);
    double& buffer = at(s.buffer, i);
    const double d = decided(s.decision, kFactor) * at(s.grad, i) + decay * p;
    buffer = decided(s.decision, kStepNumber) == 1 ? d : s.momentum * buffer + d;
    p -= decided(s.decision, kRate) * buffer;
    at(s.param, i) = p;
  }
}

}  // namespace bev::reference
