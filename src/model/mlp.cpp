#include "model/mlp.h"

#include "ops/elementwise.h"

namespace bev {

namespace {

Linear::Config up_config(const std::string& name, const ModelSpec& b) {
  const int64_t ffn = b.shape.ffn;
  const bool bias = b.model().bias == BiasKind::All;
  if (is_gated(b.model().activation)) {
    return {.name = name + ".gate_up",
            .in = b.shape.width,
            .out = 2 * ffn,
            .cut = Linear::Cut::Output,
            .bias = bias,
            .init = b.init(),
            .parts = {{"gate", ffn}, {"up", ffn}}};
  }
  return {.name = name + ".up",
          .in = b.shape.width,
          .out = ffn,
          .cut = Linear::Cut::Output,
          .bias = bias,
          .init = b.init()};
}

}  // namespace

Mlp::Mlp(ParamStore& params, const std::string& name, const ModelSpec& b)
    : activation_(b.model().activation),
      recompute_(b.config.recompute.granularity == Recompute::Selective &&
                 b.config.recompute.activation),
      up_(params, up_config(name, b)),
      down_(params, {.name = name + ".down",
                     .in = b.shape.ffn,
                     .out = b.shape.width,
                     .cut = Linear::Cut::Input,
                     .bias = b.model().bias == BiasKind::All,
                     .init = b.output_init()}) {}

Shape Mlp::activated(int64_t tokens) const {
  return {tokens, is_gated(activation_) ? up_.outputs() / 2 : up_.outputs()};
}

void Mlp::forward(Exec& ex, ModelEnv& env, ConstTensor x, ConstTensor residual, Tensor y, Saved& s,
                  const ops::FusedNorm& norm) const {
  ArenaScope scope(ex.scratch);
  const ConstTensor all = env.tensor.enter(ex, x);
  // Where nobody comes back, only a gate needs what lies before the activation.
  const bool keeps_up = is_gated(activation_) || !env.weights_constant;
  s.up = {};
  if (keeps_up) s.up = ex.keep.allocate({all.rows(), up_.outputs()}, x.dtype, "mlp.up");
  Arena& arena = recompute_ ? ex.scratch : ex.keep;
  const Tensor act = arena.allocate(activated(all.rows()), x.dtype, "mlp.act");
  s.act = recompute_ ? Tensor{} : act;
  if (is_gated(activation_)) {
    up_.forward(ex, env, all, s.up, {}, norm);
    ops::activate(ex, {.activation = activation_, .x = s.up, .y = act});
  } else {
    up_.forward_activated(ex, env, all, activation_, s.up, act, norm);
  }
  if (!y.present()) return;
  const Tensor partial = env.tensor.partial_buffer(ex, y);
  down_.forward(ex, env, act, partial, residual);
  env.tensor.leave(ex, partial, y);
}

void Mlp::backward(Exec& ex, ModelEnv& env, ConstTensor x, ConstTensor dy, bool dy_summed,
                   Tensor dx, const Saved& s) {
  ArenaScope scope(ex.scratch);
  Arena& operands = env.operands(ex);
  const ConstTensor dall = env.tensor.leave_backward(ex, dy, operands);
  const ConstTensor all = env.tensor.enter(ex, x, operands);

  Tensor act = s.act;
  if (recompute_) {
    act = operands.allocate(activated(s.up.rows()), dx.dtype, "mlp.act");
    ops::activate(ex, {.activation = activation_, .x = s.up, .y = act});
  }
  down_.backward_weight(ex, env, dall, act, dy_summed);

  const Tensor dup = operands.allocate(s.up.shape, dx.dtype, "mlp.dup");
  if (is_gated(activation_)) {
    const Tensor dact = ex.scratch.allocate(act.shape, dx.dtype, "mlp.dact");
    down_.backward_input(ex, dall, dact);
    ops::activate_backward(ex, {.activation = activation_, .dy = dact, .x = s.up, .dx = dup});
  } else {
    down_.backward_input_activated(ex, dall, activation_, s.up, dup);
  }

  up_.backward_weight(ex, env, dup, all);
  const Tensor partial = env.tensor.partial_buffer(ex, dx);
  up_.backward_input(ex, dup, partial);
  env.tensor.enter_backward(ex, partial, dx);
}

}  // namespace bev
