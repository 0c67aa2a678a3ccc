#include "model/attention.h"

#include "ops/rope.h"

namespace bev {

CoreOutput run_core(Exec& ex, ModelEnv& env, int64_t layer, const ops::AttentionInput& in,
                    Arena& out_arena, Arena& lse_arena) {
  const DType dtype = in.q.dtype;
  const int64_t queries = in.q.shape[0], heads = in.q.shape[1];
  const CoreOutput core{
      .out = out_arena.allocate(in.q.shape, dtype, "attention.out"),
      .lse = lse_arena.allocate({in.sequences, heads, div_exact(queries, in.sequences)},
                                accumulation_of(dtype), "attention.lse")};
  env.borders.attention.forward(ex, layer, in, core.out, core.lse);
  return core;
}

Attention::Attention(ParamStore& params, const std::string& name, const AttentionSpec& spec,
                     int64_t layer, const RopeTable* rope)
    : layer_(layer),
      head_dim_(spec.head_dim),
      window_(spec.window),
      scale_(spec.scale),
      causal_(spec.causal),
      recompute_(spec.recompute_core),
      dropout_(spec.dropout),
      rope_(rope),
      qkv_(params, {.name = name + ".qkv",
                    .in = spec.width,
                    .out = (spec.heads + 2 * spec.kv_heads) * head_dim_,
                    .bias = spec.qkv_bias,
                    .init = spec.init,
                    .parts = {{"q", spec.heads * head_dim_, head_dim_},
                              {"k", spec.kv_heads * head_dim_, head_dim_},
                              {"v", spec.kv_heads * head_dim_, head_dim_}}}),
      out_(params, {.name = name + ".out",
                    .in = spec.heads * head_dim_,
                    .out = spec.width,
                    .bias = spec.out_bias,
                    .init = spec.output_init}),
      heads_(div_exact(qkv_.params().weight.pieces[0].logical.rows, head_dim_)),
      kv_heads_(div_exact(qkv_.params().weight.pieces[1].logical.rows, head_dim_)) {
  if (!spec.qk_norm) return;
  q_norm_.emplace(params, name + ".q_norm", head_dim_, *spec.qk_norm);
  k_norm_.emplace(params, name + ".k_norm", head_dim_, *spec.qk_norm);
}

Attention::Params Attention::params() const {
  Params params{qkv_.params(), out_.params(), {}, {}, rope_};
  if (q_norm_) params.q_norm.emplace(q_norm_->params());
  if (k_norm_) params.k_norm.emplace(k_norm_->params());
  return params;
}

Attention::Heads Attention::heads_of(const Saved& s) const {
  const ConstTensor qkv = s.qkv;
  Heads heads{.q = heads_at(qkv, 0, heads_, head_dim_),
              .k = heads_at(qkv, heads_, kv_heads_, head_dim_),
              .v = heads_at(qkv, heads_ + kv_heads_, kv_heads_, head_dim_)};
  if (q_norm_) {
    heads.q = s.q;
    heads.k = s.k;
  }
  return heads;
}

ops::AttentionInput Attention::input(const ModelEnv& env, const TextView& text,
                                     const ScoreBias& bias, const Heads& heads) const {
  return {
      .q = heads.q,
      .k = heads.k,
      .v = heads.v,
      .sequences = text.sequences,
      .scale = scale_,
      .mask = {.causal = causal_,
               .window = window_,
               .document_start = text.document_start,
               .query_lengths = text.lengths,
               .key_lengths = text.lengths},
      .dropout = {.probability = env.pass.training ? dropout_.probability : 0.0,
                  .key = dropout_.key,
                  .rows = text.rows,
                  .head_begin = div_exact(qkv_.params().weight.pieces[0].logical.row, head_dim_)},
      .bias = bias.values};
}

void Attention::rotate(Exec& ex, const TextView& text, Tensor x, bool inverse) const {
  if (rope_ == nullptr) return;
  ops::rope(ex, {.x = x,
                 .positions = text.positions,
                 .cosine = rope_->cosine,
                 .sine = rope_->sine,
                 .inverse = inverse});
}

void Attention::forward(Exec& ex, ModelEnv& env, const TextView& text, const ScoreBias& bias,
                        ConstTensor x, ConstTensor residual, Tensor y, Saved& s) const {
  ArenaScope scope(ex.scratch);
  const int64_t tokens = env.borders.tensor.region_rows(x.rows());
  const DType dtype = y.dtype;
  s.qkv = ex.keep.allocate({tokens, qkv_.outputs()}, dtype, "attention.qkv");
  qkv_.forward(ex, env, x, s.qkv);

  if (q_norm_) {
    s.q = ex.keep.allocate({tokens, heads_, head_dim_}, dtype, "attention.q");
    s.k = ex.keep.allocate({tokens, kv_heads_, head_dim_}, dtype, "attention.k");
    q_norm_->forward(ex, heads_at(s.qkv, 0, heads_, head_dim_), s.q, s.q_norm);
    k_norm_->forward(ex, heads_at(s.qkv, heads_, kv_heads_, head_dim_), s.k, s.k_norm);
    rotate(ex, text, s.q, false);
    rotate(ex, text, s.k, false);
  } else {
    // Queries and keys are adjacent: one pass rotates both.
    rotate(ex, text, heads_at(s.qkv, 0, heads_ + kv_heads_, head_dim_), false);
  }

  Arena& arena = recompute_ ? ex.scratch : ex.keep;
  const CoreOutput core =
      run_core(ex, env, layer_, input(env, text, bias, heads_of(s)), arena, arena);
  s.core = recompute_ ? CoreOutput{} : core;
  out_.forward(ex, env, heads_as_rows(core.out), residual, y);
}

void Attention::backward(Exec& ex, ModelEnv& env, const TextView& text, const ScoreBias& bias,
                         Gradient dy, ConstTensor x, Tensor dx, const Saved& s) const {
  ArenaScope scope(ex.scratch);
  Arena& operands = env.flow.operands(ex);
  const ops::AttentionInput in = input(env, text, bias, heads_of(s));
  const CoreOutput core = recompute_ ? run_core(ex, env, layer_, in, operands, ex.scratch) : s.core;
  const Tensor dout = ex.scratch.allocate(core.out.shape, dx.dtype, "attention.dout");
  out_.backward(ex, env, dy, heads_as_rows(core.out), heads_as_rows(dout));

  const Tensor dqkv = operands.allocate(s.qkv.shape, dx.dtype, "attention.dqkv");
  const Tensor dq = heads_at(dqkv, 0, heads_, head_dim_);
  const Tensor dk = heads_at(dqkv, heads_, kv_heads_, head_dim_);
  const Tensor dv = heads_at(dqkv, heads_ + kv_heads_, kv_heads_, head_dim_);
  env.borders.attention.backward(ex, in, dout, core.out, core.lse,
                                 {.dq = dq, .dk = dk, .dv = dv, .dbias = bias.gradient});
  rotate(ex, text, heads_at(dqkv, 0, heads_ + kv_heads_, head_dim_), true);
  if (q_norm_) {
    const ConstTensor qkv = s.qkv;
    q_norm_->backward(ex, dq, heads_at(qkv, 0, heads_, head_dim_), s.q_norm, {}, {dq});
    k_norm_->backward(ex, dk, heads_at(qkv, heads_, kv_heads_, head_dim_), s.k_norm, {}, {dk});
  }
  qkv_.backward(ex, env, dqkv, x, dx);
}

}  // namespace bev
