#include "ops/update.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "ops/cpu/kernels/kernels.h"
#include "ops/cpu/parallel_loops.h"
#include "ops/op_table.h"
#include "tensor/dtype_dispatch.h"

namespace bev::cpu {

namespace {

// Element `begin` of a flat tensor, or null for an absent one.
template <class T, class View>
T* from(const View& t, int64_t begin) {
  return t.present() ? reinterpret_cast<T*>(t.data) + begin : nullptr;
}

}  // namespace

void loss_factors(Exec&, const ops::LossFactors& f) {
  const double* scale = from<const double>(f.loss_scale, 0);
  const auto* counts = from<const double>(f.counts, 0);
  auto* out = from<double>(f.out, 0);
  for (size_t i = 0; i < static_cast<size_t>(f.counts.shape[0]); ++i)
    out[i] = f.weights[i] * (scale != nullptr ? *scale : 1) / std::max(counts[i], 1.0);
}

void decide_update(Exec&, const ops::DecideUpdate& u) {
  bev::decide_update(*reinterpret_cast<const double*>(u.norm_squared.data),
                     reinterpret_cast<const double*>(u.loss.data), u.rule,
                     reinterpret_cast<double*>(u.state.data),
                     reinterpret_cast<double*>(u.decision.data));
}

void adamw(Exec& ex, const ops::AdamW& a) {
  const auto* decision = reinterpret_cast<const double*>(a.decision.data);
  if (decision[kApplied] == 0) return;
  BEV_CHECK(a.grad.dtype == DType::f32 && a.m.dtype == DType::f32 && a.v.dtype == DType::f32, Usage,
            "adamw: the cpu device keeps gradients and moments in f32");
  const double rate = decision[kRate], decay = a.decays ? decision[kWeightDecay] : 0;
  const double correction1 = 1 - std::pow(a.beta1, decision[kStepNumber]);
  const double correction2 = 1 - std::pow(a.beta2, decision[kStepNumber]);
  visit_cpu(a.param.dtype, "adamw", [&]<class T>() {
    threads_of(ex).split(a.param.shape[0], kGrain, [&](int64_t begin, int64_t end) {
      kernels_of<T>().adamw({.param = from<T>(a.param, begin),
                             .master = from<float>(a.master, begin),
                             .m = from<float>(a.m, begin),
                             .v = from<float>(a.v, begin),
                             .grad = from<const float>(a.grad, begin),
                             .count = end - begin,
                             .factor = static_cast<float>(decision[kFactor]),
                             .beta1 = static_cast<float>(a.beta1),
                             .beta2 = static_cast<float>(a.beta2),
                             .one_minus_beta1 = static_cast<float>(1 - a.beta1),
                             .one_minus_beta2 = static_cast<float>(1 - a.beta2),
                             .step_size = static_cast<float>(rate / correction1),
                             .root_correction2 = static_cast<float>(std::sqrt(correction2)),
                             .eps = static_cast<float>(a.eps),
                             .decay = static_cast<float>(1 - rate * decay)});
    });
  });
}

void sgd(Exec& ex, const ops::Sgd& s) {
  const auto* decision = reinterpret_cast<const double*>(s.decision.data);
  if (decision[kApplied] == 0) return;
  const double decay = s.decays ? decision[kWeightDecay] : 0;
  visit_cpu(s.param.dtype, "sgd", [&]<class T>() {
    threads_of(ex).split(s.param.shape[0], kGrain, [&](int64_t begin, int64_t end) {
      kernels_of<T>().sgd({.param = from<T>(s.param, begin),
                           .master = from<float>(s.master, begin),
                           .buffer = from<float>(s.buffer, begin),
                           .grad = from<const float>(s.grad, begin),
                           .count = end - begin,
                           .factor = static_cast<float>(decision[kFactor]),
                           .weight_decay = static_cast<float>(decay),
                           .momentum = static_cast<float>(s.momentum),
                           .lr = static_cast<float>(decision[kRate]),
                           .first = decision[kStepNumber] == 1});
    });
  });
}

}  // namespace bev::cpu
