#include "model/cross_attention.h"

namespace bev {

CrossAttention::CrossAttention(ParamStore& params, const std::string& name,
                               const AttentionSpec& spec, int64_t layer)
    : layer_(layer),
      head_dim_(spec.head_dim),
      scale_(spec.scale),
      masks_padding_(spec.masks_padding),
      recompute_(spec.recompute_core),
      dropout_(spec.dropout),
      q_(params, {.name = name + ".q",
                  .in = spec.width,
                  .out = spec.heads * head_dim_,
                  .bias = spec.qkv_bias,
                  .init = spec.init,
                  .parts = {{"q", spec.heads * head_dim_, head_dim_}}}),
      kv_(params, {.name = name + ".kv",
                   .in = spec.width,
                   .out = 2 * spec.kv_heads * head_dim_,
                   .bias = spec.qkv_bias,
                   .init = spec.init,
                   .parts = {{"k", spec.kv_heads * head_dim_, head_dim_},
                             {"v", spec.kv_heads * head_dim_, head_dim_}}}),
      out_(params, {.name = name + ".out",
                    .in = spec.heads * head_dim_,
                    .out = spec.width,
                    .bias = spec.out_bias,
                    .init = spec.output_init}),
      heads_(div_exact(q_.outputs(), head_dim_)),
      kv_heads_(div_exact(kv_.outputs(), 2 * head_dim_)) {}

ops::AttentionInput CrossAttention::input(const ModelEnv& env, const TextView& text,
                                          const ContextView& context, const Saved& s) const {
  const ConstTensor q = s.q, kv = s.kv;
  return {
      .q = heads_at(q, 0, heads_, head_dim_),
      .k = heads_at(kv, 0, kv_heads_, head_dim_),
      .v = heads_at(kv, kv_heads_, kv_heads_, head_dim_),
      .sequences = text.sequences,
      .scale = scale_,
      .mask = {.causal = false,
               .query_lengths = masks_padding_ ? text.lengths : ConstTensor{},
               .key_lengths = masks_padding_ ? context.text.lengths : ConstTensor{}},
      .dropout = {.probability = env.pass.training ? dropout_.probability : 0.0,
                  .key = dropout_.key,
                  .rows = text.rows,
                  .head_begin = div_exact(q_.params().weight.pieces[0].logical.row, head_dim_)}};
}

void CrossAttention::forward(Exec& ex, ModelEnv& env, const TextView& text,
                             const ContextView& context, ConstTensor x, ConstTensor residual,
                             Tensor y, Saved& s) const {
  ArenaScope scope(ex.scratch);
  const TensorRegion& region = env.borders.tensor;
  s.q = ex.keep.allocate({region.region_rows(x.rows()), q_.outputs()}, y.dtype, "cross.q");
  s.kv = ex.keep.allocate({region.region_rows(context.hidden.rows()), kv_.outputs()}, y.dtype,
                          "cross.kv");
  q_.forward(ex, env, x, s.q);
  kv_.forward(ex, env, context.hidden, s.kv);
  Arena& arena = recompute_ ? ex.scratch : ex.keep;
  const CoreOutput core = run_core(ex, env, layer_, input(env, text, context, s), arena, arena);
  s.core = recompute_ ? CoreOutput{} : core;
  out_.forward(ex, env, heads_as_rows(core.out), residual, y);
}

void CrossAttention::backward(Exec& ex, ModelEnv& env, const TextView& text,
                              const ContextView& context, Gradient dy, ConstTensor x, Tensor dx,
                              Tensor dcontext, const Saved& s) const {
  ArenaScope scope(ex.scratch);
  Arena& operands = env.flow.operands(ex);
  const ops::AttentionInput in = input(env, text, context, s);
  const CoreOutput core = recompute_ ? run_core(ex, env, layer_, in, operands, ex.scratch) : s.core;
  const Tensor dout = ex.scratch.allocate(core.out.shape, dx.dtype, "cross.dout");
  out_.backward(ex, env, dy, heads_as_rows(core.out), heads_as_rows(dout));

  const Tensor dq = operands.allocate(s.q.shape, dx.dtype, "cross.dq");
  const Tensor dkv = operands.allocate(s.kv.shape, dx.dtype, "cross.dkv");
  env.borders.attention.backward(ex, in, dout, core.out, core.lse,
                                 {.dq = heads_at(dq, 0, heads_, head_dim_),
                                  .dk = heads_at(dkv, 0, kv_heads_, head_dim_),
                                  .dv = heads_at(dkv, kv_heads_, kv_heads_, head_dim_)});
  kv_.backward(ex, env, dkv, context.hidden, dcontext);
  q_.backward(ex, env, dq, x, dx);
}

}  // namespace bev
