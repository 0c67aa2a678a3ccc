#include "model/mlp.h"

#include "ops/elementwise.h"

namespace bev {

namespace {

LinearSpec up_spec(const std::string& name, const MlpSpec& spec) {
  const bool gated = is_gated(spec.activation);
  LinearSpec up{.name = name + (gated ? ".gate_up" : ".up"),
                .in = spec.width,
                .out = gated ? 2 * spec.ffn : spec.ffn,
                .bias = spec.bias,
                .init = spec.init};
  if (gated) up.parts = {{"gate", spec.ffn}, {"up", spec.ffn}};
  return up;
}

}  // namespace

Mlp::Mlp(ParamStore& params, const std::string& name, const MlpSpec& spec)
    : activation_(spec.activation),
      recompute_(spec.recompute_activation),
      up_(params, up_spec(name, spec)),
      down_(params, {.name = name + ".down",
                     .in = spec.ffn,
                     .out = spec.width,
                     .bias = spec.bias,
                     .init = spec.output_init}) {}

Shape Mlp::activated(int64_t tokens) const {
  return {tokens, is_gated() ? up_.outputs() / 2 : up_.outputs()};
}

void Mlp::forward(Exec& ex, ModelEnv& env, ConstTensor x, ConstTensor residual, Tensor y,
                  Saved& s) const {
  ArenaScope scope(ex.scratch);
  const int64_t rows = env.borders.tensor.region_rows(x.rows());
  s.up = ex.keep.allocate({rows, up_.outputs()}, x.dtype, "mlp.up");
  Arena& arena = recompute_ ? ex.scratch : ex.keep;
  const Tensor act = arena.allocate(activated(rows), x.dtype, "mlp.act");
  s.act = recompute_ ? Tensor{} : act;
  up_.forward(ex, env, x, is_gated() ? s.up : act, fused(s));
  if (is_gated()) ops::activate(ex, {.activation = activation_, .x = s.up, .y = act});
  if (y.present()) down_.forward(ex, env, act, residual, y);
}

void Mlp::backward(Exec& ex, ModelEnv& env, Gradient dy, ConstTensor x, Tensor dx,
                   const Saved& s) const {
  ArenaScope scope(ex.scratch);
  Arena& operands = env.flow.operands(ex);
  Tensor act = s.act;
  if (recompute_) {
    act = operands.allocate(activated(s.up.rows()), dx.dtype, "mlp.act");
    ops::activate(ex, {.activation = activation_, .x = s.up, .y = act});
  }
  const Tensor dup = operands.allocate(s.up.shape, dx.dtype, "mlp.dup");
  const Tensor dact = is_gated() ? ex.scratch.allocate(act.shape, dx.dtype, "mlp.dact") : dup;
  down_.backward(ex, env, dy, act, dact, fused(s));
  if (is_gated())
    ops::activate_backward(ex, {.activation = activation_, .dy = dact, .x = s.up, .dx = dup});
  up_.backward(ex, env, dup, x, dx);
}

}  // namespace bev
