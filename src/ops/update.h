// Optimizer updates on flat ranges. What decides an update lives in device memory (`control`),
// because on an asynchronous device the host learns of a step late.
#pragma once

#include "device/exec.h"

namespace bev::ops {

// control = { factor every gradient is multiplied by, 1 when the update is applied else 0 }.
// norm = sqrt(norm_squared) * grad_multiplier; factor = grad_multiplier * min(1, max_norm / (norm +
// 1e-6)), without clipping when max_norm is 0; a norm that is not finite gives {0, 0}.
// norm_squared f64 [1]; control f64 [2]
struct UpdateControl {
  ConstTensor norm_squared;
  double max_norm = 0;
  double grad_multiplier = 1;
  Tensor control;
};
void update_control(Exec& ex, const UpdateControl& u);

// g = factor * grad;  m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
// p = p - lr (m / (1 - b1^step) / (sqrt(v / (1 - b2^step)) + eps) + weight_decay p)
// Computed on `master`; `param` receives it rounded. Without a master, param is its own.
// All [n], contiguous; moments, master and grad of the accumulation type. step counts from 1.
struct AdamW {
  Tensor param;
  Tensor master{};
  Tensor m, v;
  ConstTensor grad, control;
  double lr = 0, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  int64_t step = 1;
};
void adamw(Exec& ex, const AdamW& a);

// d = factor * grad + weight_decay p;  buf = d at step 1, else momentum buf + d;  p = p - lr buf
struct Sgd {
  Tensor param;
  Tensor master{};
  Tensor buffer;
  ConstTensor grad, control;
  double lr = 0, momentum = 0.9, weight_decay = 0;
  int64_t step = 1;
};
void sgd(Exec& ex, const Sgd& s);

}  // namespace bev::ops
