#include "model/linear.h"

namespace bev {

namespace {

using ops::Epilogue;
using ops::Transpose;

// `dim`: the dim of the weight that the tensor region shards; none: every member has all.
LinearParams declare_linear(ParamStore& params, const LinearSpec& spec, std::optional<int> dim) {
  Placement place{.parts = spec.parts};
  if (dim) place.cut = Cut{.dim = *dim, .axis = Axis::Tensor};
  Param& weight = params.declare({.name = spec.name + ".weight",
                                  .shape = {spec.out, spec.in},
                                  .place = place,
                                  .init = spec.init});
  if (!spec.bias) return {weight, nullptr};
  ParamSpec bias{.name = spec.name + ".bias",
                 .shape = {spec.out},
                 .role = Role::Bias,
                 .init = {Init::Kind::Zeros}};
  // If inputs are cut, every member of the region sees the gradient of all tokens: Replica::Same.
  if (dim == 0) bias.place = {.cut = Cut{.dim = 0, .axis = Axis::Tensor}, .parts = spec.parts};
  return {weight, &params.declare(std::move(bias))};
}

Epilogue forward_epilogue(const LinearParams& params, const FusedActivation& activation) {
  const bool bias = params.bias != nullptr;
  if (activation.present()) return bias ? Epilogue::BiasActivate : Epilogue::Activate;
  return bias ? Epilogue::Bias : Epilogue::None;
}

void forward_gemm(Exec& ex, const LinearParams& params, ConstTensor x, Tensor y,
                  const FusedActivation& activation) {
  ops::matmul(ex, {.a = x,
                   .b = params.weight.value,
                   .tb = Transpose::Yes,
                   .out = y,
                   .epilogue = forward_epilogue(params, activation),
                   .bias = params.bias_value(),
                   .activation = activation.kind.value_or(Activation{}),
                   .pre_activation = activation.input});
}

GemmGrad weight_grad_of(const LinearParams& params, ConstTensor dy, ConstTensor x, Tensor dbias) {
  return {&params.weight,
          {.a = dy, .b = x, .ta = Transpose::Yes, .out = params.weight.grad, .dbias = dbias}};
}

}  // namespace

ColumnLinear::ColumnLinear(ParamStore& params, const LinearSpec& spec)
    : params_(declare_linear(params, spec, 0)) {}

void ColumnLinear::forward(Exec& ex, const ModelEnv& env, ConstTensor x, Tensor y,
                           const FusedActivation& activation) const {
  ArenaScope scope(ex.scratch);
  forward_gemm(ex, params_, env.borders.tensor.enter(ex, x, ex.scratch), y, activation);
}

void ColumnLinear::backward(Exec& ex, ModelEnv& env, ConstTensor dy, ConstTensor x,
                            Tensor dx) const {
  ArenaScope scope(ex.scratch);
  const TensorRegion& region = env.borders.tensor;
  // The input is gathered while the GEMM of its gradient runs.
  const TensorRegion::Entering all = region.begin_enter(ex, x, env.flow.operands(ex));
  const Tensor partial = region.partial_buffer(ex, dx);
  ops::matmul(ex, {.a = dy, .b = params_.weight.value, .out = partial});
  region.end_enter(ex, all);
  env.flow.weight_grad(ex, weight_grad_of(params_, dy, all.whole, params_.bias_grad()));
  region.enter_backward(ex, partial, dx);
}

RowLinear::RowLinear(ParamStore& params, const LinearSpec& spec)
    : params_(declare_linear(params, spec, 1)) {}

void RowLinear::forward(Exec& ex, const ModelEnv& env, ConstTensor x, ConstTensor residual,
                        Tensor y) const {
  ArenaScope scope(ex.scratch);
  const TensorRegion& region = env.borders.tensor;
  const ConstTensor bias = region.on_one_member(params_.bias_value());
  const Tensor partial = region.partial_buffer(ex, y);
  ops::matmul(ex, {.a = x,
                   .b = params_.weight.value,
                   .tb = Transpose::Yes,
                   .out = partial,
                   .addend = region.on_one_member(residual),
                   .epilogue = bias.present() ? Epilogue::Bias : Epilogue::None,
                   .bias = bias});
  region.leave(ex, partial, y);
}

void RowLinear::backward(Exec& ex, ModelEnv& env, Gradient dy, ConstTensor x, Tensor dx,
                         const FusedActivation& activation) const {
  ArenaScope scope(ex.scratch);
  const ConstTensor all = env.borders.tensor.leave_backward(ex, dy.values, env.flow.operands(ex));
  ops::matmul(ex, {.a = all,
                   .b = params_.weight.value,
                   .out = dx,
                   .epilogue = activation.present() ? Epilogue::ActivateBackward : Epilogue::None,
                   .activation = activation.kind.value_or(Activation{}),
                   .activation_input = activation.input});
  env.flow.weight_grad(ex,
                       weight_grad_of(params_, all, x, dy.summed ? Tensor{} : params_.bias_grad()));
}

ReplicatedLinear::ReplicatedLinear(ParamStore& params, const LinearSpec& spec)
    : params_(declare_linear(params, spec, {})) {}

void ReplicatedLinear::forward(Exec& ex, ConstTensor x, Tensor y,
                               const FusedActivation& activation) const {
  forward_gemm(ex, params_, x, y, activation);
}

void ReplicatedLinear::backward(Exec& ex, ConstTensor dy, ConstTensor x, Tensor dx) const {
  ops::matmul(ex, {.a = dy, .b = params_.weight.value, .out = dx});
  weight_grad_of(params_, dy, x, params_.bias_grad()).compute(ex);
}

}  // namespace bev
