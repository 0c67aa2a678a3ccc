#include "model/norm.h"

namespace bev {

namespace {

ParamSpec vector_spec(const std::string& name, int64_t width, Role role, Init::Kind init,
                      Replica tensor) {
  return {
      .name = name, .shape = {width}, .role = role, .place = {.tensor = tensor}, .init = {init}};
}

}  // namespace

NormModule::NormModule(ParamStore& params, const std::string& name, int64_t width,
                       const NormSpec& spec)
    : kind_(spec.kind),
      eps_(spec.eps),
      weight_(params.declare(
          vector_spec(name + ".weight", width, Role::Norm, Init::Kind::Ones, spec.tensor))),
      bias_(kind_ == NormKind::LayerNorm
                ? &params.declare(vector_spec(name + ".bias", width, Role::Bias, Init::Kind::Zeros,
                                              spec.tensor))
                : nullptr) {}

NormModule::Saved NormModule::statistics(Arena& arena, const ConstTensor& x) const {
  const int64_t rows = x.shape.elements() / x.shape[x.shape.rank() - 1];
  const DType dtype = accumulation_of(x.dtype);
  Saved saved;
  if (kind_ == NormKind::LayerNorm) saved.mean = arena.allocate({rows}, dtype, "norm.mean");
  saved.rstd = arena.allocate({rows}, dtype, "norm.rstd");
  return saved;
}

void NormModule::forward(Exec& ex, ConstTensor x, Tensor y, Saved& saved) const {
  saved = statistics(ex.keep, x);
  ops::norm(ex, {.kind = kind_,
                 .x = x,
                 .weight = weight_.value,
                 .bias = params().bias_value(),
                 .eps = eps_,
                 .y = y,
                 .mean = saved.mean,
                 .rstd = saved.rstd});
}

void NormModule::forward_residual(Exec& ex, ConstTensor residual, ConstTensor delta,
                                  const ops::Dropout& dropout, Tensor sum, Tensor y,
                                  Saved& saved) const {
  saved = statistics(ex.keep, sum);
  ops::residual_norm(ex, {.residual = residual,
                          .delta = delta,
                          .dropout = dropout,
                          .sum = sum,
                          .kind = kind_,
                          .weight = weight_.value,
                          .bias = params().bias_value(),
                          .eps = eps_,
                          .y = y,
                          .mean = saved.mean,
                          .rstd = saved.rstd});
}

void NormModule::recompute(Exec& ex, ConstTensor x, Tensor y) const {
  ArenaScope scope(ex.scratch);
  const Saved again = statistics(ex.scratch, x);
  ops::norm(ex, {.kind = kind_,
                 .x = x,
                 .weight = weight_.value,
                 .bias = params().bias_value(),
                 .eps = eps_,
                 .y = y,
                 .mean = again.mean,
                 .rstd = again.rstd});
}

void NormModule::backward(Exec& ex, ConstTensor dy, ConstTensor x, const Saved& saved,
                          ConstTensor dresidual, GradientTarget dx) const {
  ops::norm_backward(ex, {.kind = kind_,
                          .dy = dy,
                          .x = x,
                          .weight = weight_.value,
                          .mean = saved.mean,
                          .rstd = saved.rstd,
                          .dresidual = dresidual,
                          .dx = dx.values,
                          .dweight = weight_.grad,
                          .dbias = bias_ != nullptr ? bias_->grad : Tensor{},
                          .dx_sums = dx.sums});
}

}  // namespace bev
