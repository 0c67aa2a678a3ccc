#include "ops/update.h"

#include <algorithm>
#include <cmath>

#include "ops/cpu/kernels.h"
#include "ops/cpu/ops.h"
#include "ops/cpu/threads.h"
#include "tensor/visit.h"

namespace bev::cpu {

namespace {

// Element `begin` of a flat tensor, or null for an absent one.
template <class T, class View>
T* from(const View& t, int64_t begin) {
  return t.present() ? reinterpret_cast<T*>(t.data) + begin : nullptr;
}

}  // namespace

void update_control(Exec&, const ops::UpdateControl& u) {
  const double squared = *reinterpret_cast<const double*>(u.norm_squared.data);
  const double norm = std::sqrt(squared) * u.grad_multiplier;
  const bool finite = std::isfinite(norm);
  const double clip = u.max_norm > 0 ? std::min(1.0, u.max_norm / (norm + 1e-6)) : 1;
  auto* control = reinterpret_cast<double*>(u.control.data);
  control[0] = finite ? u.grad_multiplier * clip : 0;
  control[1] = finite ? 1 : 0;
}

void adamw(Exec& ex, const ops::AdamW& a) {
  const auto* control = reinterpret_cast<const double*>(a.control.data);
  const double factor = control[0], applied = control[1];
  if (applied == 0) return;
  const auto step = static_cast<double>(a.step);
  const double correction1 = 1 - std::pow(a.beta1, step);
  const double correction2 = 1 - std::pow(a.beta2, step);
  visit_cpu(a.param.dtype, "adamw", [&]<class T>() {
    threads_of(ex).split(a.param.shape[0], kGrain, [&](int64_t begin, int64_t end) {
      kernels_of<T>().adamw({.param = from<T>(a.param, begin),
                             .master = from<float>(a.master, begin),
                             .m = from<float>(a.m, begin),
                             .v = from<float>(a.v, begin),
                             .grad = from<const float>(a.grad, begin),
                             .count = end - begin,
                             .factor = static_cast<float>(factor),
                             .beta1 = static_cast<float>(a.beta1),
                             .beta2 = static_cast<float>(a.beta2),
                             .one_minus_beta1 = static_cast<float>(1 - a.beta1),
                             .one_minus_beta2 = static_cast<float>(1 - a.beta2),
                             .step_size = static_cast<float>(a.lr / correction1),
                             .root_correction2 = static_cast<float>(std::sqrt(correction2)),
                             .eps = static_cast<float>(a.eps),
                             .decay = static_cast<float>(1 - a.lr * a.weight_decay)});
    });
  });
}

void sgd(Exec& ex, const ops::Sgd& s) {
  const auto* control = reinterpret_cast<const double*>(s.control.data);
  const double factor = control[0], applied = control[1];
  if (applied == 0) return;
  visit_cpu(s.param.dtype, "sgd", [&]<class T>() {
    threads_of(ex).split(s.param.shape[0], kGrain, [&](int64_t begin, int64_t end) {
      kernels_of<T>().sgd({.param = from<T>(s.param, begin),
                           .master = from<float>(s.master, begin),
                           .buffer = from<float>(s.buffer, begin),
                           .grad = from<const float>(s.grad, begin),
                           .count = end - begin,
                           .factor = static_cast<float>(factor),
                           .weight_decay = static_cast<float>(s.weight_decay),
                           .momentum = static_cast<float>(s.momentum),
                           .lr = static_cast<float>(s.lr),
                           .first = s.step == 1});
    });
  });
}

}  // namespace bev::cpu
