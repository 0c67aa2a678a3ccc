#include "model/attention.h"

#include <cmath>

#include "ops/rope.h"

namespace bev {

namespace {

// [tokens, heads, head_dim] without gaps seen as [tokens, heads * head_dim].
template <class T>
T as_rows(const T& t) {
  return reshape(t, {t.shape[0], t.shape[1] * t.shape[2]});
}

}  // namespace

Attention::Attention(ParamStore& params, const std::string& name, const AttentionSpec& spec,
                     int64_t layer, const RopeTable* rope)
    : layer_(layer),
      head_dim_(spec.head_dim),
      window_(spec.window),
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

ops::AttentionInput Attention::input(const ModelEnv& env, const MicroBatch& micro,
                                     const Heads& heads) const {
  return {
      .q = heads.q,
      .k = heads.k,
      .v = heads.v,
      .sequences = micro.sequences,
      .scale = 1.0 / std::sqrt(static_cast<double>(head_dim_)),
      .mask = {.causal = causal_,
               .window = window_,
               .document_start = micro.document_start,
               .query_lengths = micro.lengths,
               .key_lengths = micro.lengths},
      .dropout = {.probability = env.pass.training ? dropout_.probability : 0.0,
                  .key = dropout_.key,
                  .rows = micro.rows,
                  .head_begin = div_exact(qkv_.params().weight.pieces[0].logical.row, head_dim_)}};
}

void Attention::rotate(Exec& ex, const MicroBatch& micro, Tensor x, bool inverse) const {
  if (rope_ == nullptr) return;
  ops::rope(ex, {.x = x,
                 .positions = micro.positions,
                 .cosine = rope_->cosine,
                 .sine = rope_->sine,
                 .inverse = inverse});
}

Attention::Core Attention::run_core(Exec& ex, ModelEnv& env, const MicroBatch& micro,
                                    const ops::AttentionInput& in, Arena& out_arena,
                                    Arena& lse_arena) const {
  const DType dtype = in.q.dtype;
  const Core core{
      .out = out_arena.allocate({in.q.shape[0], heads_, head_dim_}, dtype, "attention.out"),
      .lse = lse_arena.allocate({micro.sequences, heads_, micro.length}, accumulation_of(dtype),
                                "attention.lse")};
  env.borders.attention.forward(ex, layer_, in, core.out, core.lse);
  return core;
}

void Attention::forward(Exec& ex, ModelEnv& env, const MicroBatch& micro, ConstTensor x,
                        ConstTensor residual, Tensor y, Saved& s) const {
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
    rotate(ex, micro, s.q, false);
    rotate(ex, micro, s.k, false);
  } else {
    // Queries and keys are adjacent: one pass rotates both.
    rotate(ex, micro, heads_at(s.qkv, 0, heads_ + kv_heads_, head_dim_), false);
  }

  Arena& arena = recompute_ ? ex.scratch : ex.keep;
  const Core core = run_core(ex, env, micro, input(env, micro, heads_of(s)), arena, arena);
  s.out = recompute_ ? Tensor{} : core.out;
  s.lse = recompute_ ? Tensor{} : core.lse;
  out_.forward(ex, env, as_rows(core.out), residual, y);
}

void Attention::backward(Exec& ex, ModelEnv& env, const MicroBatch& micro, Gradient dy,
                         ConstTensor x, Tensor dx, const Saved& s) const {
  ArenaScope scope(ex.scratch);
  Arena& operands = env.flow.operands(ex);
  const ops::AttentionInput in = input(env, micro, heads_of(s));
  const Core core =
      recompute_ ? run_core(ex, env, micro, in, operands, ex.scratch) : Core{s.out, s.lse};
  const Tensor dout = ex.scratch.allocate(core.out.shape, dx.dtype, "attention.dout");
  out_.backward(ex, env, dy, as_rows(core.out), as_rows(dout));

  const Tensor dqkv = operands.allocate(s.qkv.shape, dx.dtype, "attention.dqkv");
  const Tensor dq = heads_at(dqkv, 0, heads_, head_dim_);
  const Tensor dk = heads_at(dqkv, heads_, kv_heads_, head_dim_);
  const Tensor dv = heads_at(dqkv, heads_ + kv_heads_, kv_heads_, head_dim_);
  env.borders.attention.backward(ex, in, dout, core.out, core.lse, {.dq = dq, .dk = dk, .dv = dv});
  rotate(ex, micro, heads_at(dqkv, 0, heads_ + kv_heads_, head_dim_), true);
  if (q_norm_) {
    const ConstTensor qkv = s.qkv;
    q_norm_->backward(ex, dq, heads_at(qkv, 0, heads_, head_dim_), s.q_norm, {}, {dq});
    k_norm_->backward(ex, dk, heads_at(qkv, heads_, kv_heads_, head_dim_), s.k_norm, {}, {dk});
  }
  qkv_.backward(ex, env, dqkv, x, dx);
}

}  // namespace bev
