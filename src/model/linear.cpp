#include "model/linear.h"

namespace bev {

namespace {

using ops::Epilogue;
using ops::Transpose;

Param& declare_weight(ParamStore& params, const Linear::Config& c) {
  const int dim = c.cut == Linear::Cut::Output ? 0 : 1;
  return params.declare({.name = c.name + ".weight",
                         .shape = {c.out, c.in},
                         .place = {.cut = Cut{.dim = dim, .axis = Axis::Tensor}, .parts = c.parts},
                         .init = c.init});
}

Param* declare_bias(ParamStore& params, const Linear::Config& c) {
  if (!c.bias) return nullptr;
  ParamSpec spec{
      .name = c.name + ".bias", .shape = {c.out}, .role = Role::Bias, .init = {Init::Kind::Zeros}};
  // If the inputs are cut, every tensor rank sees the gradient of all tokens: Replica::Same.
  if (c.cut == Linear::Cut::Output)
    spec.place = {.cut = Cut{.dim = 0, .axis = Axis::Tensor}, .parts = c.parts};
  return &params.declare(std::move(spec));
}

}  // namespace

Linear::Linear(ParamStore& params, const Config& c)
    : cut_(c.cut), weight_(declare_weight(params, c)), bias_(declare_bias(params, c)) {}

void Linear::forward(Exec& ex, const ModelEnv& env, ConstTensor x, Tensor y, ConstTensor residual,
                     const ops::FusedNorm& norm) const {
  ConstTensor bias = bias_ != nullptr ? ConstTensor(bias_->value) : ConstTensor{};
  if (cut_ == Cut::Input) {
    bias = env.tensor.on_one_member(bias);
    residual = env.tensor.on_one_member(residual);
  }
  ops::matmul(ex, {.a = x,
                   .b = weight_.value,
                   .tb = Transpose::Yes,
                   .out = y,
                   .addend = residual,
                   .epilogue = bias.present() ? Epilogue::Bias : Epilogue::None,
                   .bias = bias,
                   .b_is_constant = env.weights_constant,
                   .norm = norm});
}

void Linear::forward_activated(Exec& ex, const ModelEnv& env, ConstTensor x, Activation activation,
                               Tensor pre, Tensor y, const ops::FusedNorm& norm) const {
  ops::matmul(ex, {.a = x,
                   .b = weight_.value,
                   .tb = Transpose::Yes,
                   .out = y,
                   .epilogue = bias_ != nullptr ? Epilogue::BiasActivate : Epilogue::Activate,
                   .bias = bias_ != nullptr ? ConstTensor(bias_->value) : ConstTensor{},
                   .activation = activation,
                   .pre_activation = pre,
                   .b_is_constant = env.weights_constant,
                   .norm = norm});
}

void Linear::backward_input(Exec& ex, ConstTensor dy, Tensor dx) const {
  ops::matmul(ex, {.a = dy, .b = weight_.value, .out = dx});
}

void Linear::backward_input_activated(Exec& ex, ConstTensor dy, Activation activation,
                                      ConstTensor pre, Tensor dx) const {
  ops::matmul(ex, {.a = dy,
                   .b = weight_.value,
                   .out = dx,
                   .epilogue = Epilogue::ActivateBackward,
                   .activation = activation,
                   .activation_input = pre});
}

void Linear::backward_weight(Exec& ex, ModelEnv& env, ConstTensor dy, ConstTensor x,
                             bool dy_summed) {
  weight_grad(ex, env, weight_,
              {.a = dy,
               .b = x,
               .ta = Transpose::Yes,
               .out = weight_.grad,
               .dbias = dy_summed ? Tensor{} : bias_grad()});
}

}  // namespace bev
