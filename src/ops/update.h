// Optimizer updates on flat ranges, decided in device memory by update_rule.h.
#pragma once

#include "device/exec.h"
#include "ops/update_rule.h"

namespace bev::ops {

// The factor of each loss in the gradient: weight * loss scale / count.  counts f64 [losses], a
// count of 0 divides by 1; loss_scale f64 [1], optional: 1; out f64 [losses]
struct LossFactors {
  ConstTensor counts;
  ConstTensor loss_scale{};
  LossWeights weights{1};
  Tensor out;
};
void loss_factors(Exec& ex, const LossFactors& f);

// decide_update() on the device.  norm_squared f64 [1]; loss f64 [2 losses]: sum, count; state
// f64 [kUpdateStates], updated; decision f64 [kUpdateDecisions], written
struct DecideUpdate {
  ConstTensor norm_squared, loss;
  UpdateRule rule{};
  Tensor state, decision;
};
void decide_update(Exec& ex, const DecideUpdate& u);

// With factor, rate and step number n of the decision, nothing when it is not applied:
// g = factor * grad;  m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
// p = p - rate (m / (1 - b1^n) / (sqrt(v / (1 - b2^n)) + eps) + weight decay p)
// Computed on `master`; `param` receives it rounded. Without a master, param is its own.
// All [count], contiguous; master of the accumulation type, grad and moments too or (cuda) of
// param's. Short moments are rounded stochastically: the draw for element i is word i % 4 of
// philox(rounding_key, n, (first + i) / 4) for v and of the mixed key for m.
struct AdamW {
  Tensor param;
  Tensor master{};
  Tensor m, v;
  ConstTensor grad, decision;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  bool decays = true;  // whether the decision's weight decay applies
  uint64_t rounding_key = 0;
  int64_t first = 0;  // the logical index of element 0; a multiple of 4
};
void adamw(Exec& ex, const AdamW& a);

// d = factor * grad + weight decay p;  buf = d at the first step, else momentum buf + d;
// p = p - rate buf
struct Sgd {
  Tensor param;
  Tensor master{};
  Tensor buffer;
  ConstTensor grad, decision;
  double momentum = 0.9;
  bool decays = true;
};
void sgd(Exec& ex, const Sgd& s);

}  // namespace bev::ops
