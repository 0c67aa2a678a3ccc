#include "model/attention.h"

#include <cmath>

#include "ops/rope.h"

namespace bev {

namespace {

// Column range [first head, first head + count) of a fused row, seen as heads.
template <class T>
T heads_at(const T& fused, int64_t first, int64_t count, int64_t head_dim) {
  return split_last(slice(fused, 1, first * head_dim, count * head_dim), head_dim);
}

// [tokens, heads, head_dim] without gaps seen as [tokens, heads * head_dim].
template <class T>
T as_rows(const T& t) {
  return reshape(t, {t.shape[0], t.shape[1] * t.shape[2]});
}

}  // namespace

Attention::Attention(ParamStore& params, const std::string& name, const ModelSpec& b, int64_t layer,
                     const RopeTable& rope)
    : layer_(layer),
      head_dim_(b.shape.head_dim),
      window_(b.model().window),
      dropout_(b.model().attention_dropout),
      dropout_key_(dropout_key(b.seed(), layer, DropoutSite::Probabilities)),
      recompute_(b.config.recompute.granularity == Recompute::Selective &&
                 b.config.recompute.attention),
      rope_(rope),
      qkv_(params, {.name = name + ".qkv",
                    .in = b.shape.width,
                    .out = (b.shape.heads + 2 * b.shape.kv_heads) * head_dim_,
                    .cut = Linear::Cut::Output,
                    .bias = b.model().bias != BiasKind::None,
                    .init = b.init(),
                    .parts = {{"q", b.shape.heads * head_dim_, head_dim_},
                              {"k", b.shape.kv_heads * head_dim_, head_dim_},
                              {"v", b.shape.kv_heads * head_dim_, head_dim_}}}),
      out_(params, {.name = name + ".out",
                    .in = b.shape.heads * head_dim_,
                    .out = b.shape.width,
                    .cut = Linear::Cut::Input,
                    .bias = b.model().bias == BiasKind::All,
                    .init = b.output_init()}),
      heads_(div_exact(qkv_.weight().pieces[0].logical.rows, head_dim_)),
      kv_heads_(div_exact(qkv_.weight().pieces[1].logical.rows, head_dim_)) {
  if (b.model().qk_norm) {
    // Each tensor rank sees the gradients of its own heads.
    q_norm_.emplace(params, name + ".q_norm", b, head_dim_, Replica::Sum);
    k_norm_.emplace(params, name + ".k_norm", b, head_dim_, Replica::Sum);
  }
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
  return {.q = heads.q,
          .k = heads.k,
          .v = heads.v,
          .sequences = micro.sequences,
          .scale = 1.0 / std::sqrt(static_cast<double>(head_dim_)),
          .mask = {.causal = true, .window = window_, .document_start = micro.document_start},
          .dropout = {.probability = env.training ? dropout_ : 0.0,
                      .key = dropout_key_,
                      .rows = micro.rows,
                      .head_begin = div_exact(qkv_.weight().pieces[0].logical.row, head_dim_)}};
}

void Attention::rotate(Exec& ex, const MicroBatch& micro, Tensor x, bool inverse) const {
  if (!rope_.cosine.present()) return;
  ops::rope(ex, {.x = x,
                 .positions = micro.positions,
                 .cosine = rope_.cosine,
                 .sine = rope_.sine,
                 .inverse = inverse});
}

void Attention::forward(Exec& ex, ModelEnv& env, const MicroBatch& micro, ConstTensor x,
                        ConstTensor residual, Tensor y, Saved& s,
                        const ops::FusedNorm& norm) const {
  ArenaScope scope(ex.scratch);
  const ConstTensor all = env.tensor.enter(ex, x);
  const int64_t tokens = all.rows();
  const DType dtype = y.dtype;
  s.qkv = ex.keep.allocate({tokens, qkv_.outputs()}, dtype, "attention.qkv");
  qkv_.forward(ex, env, all, s.qkv, {}, norm);

  Tensor q = heads_at(s.qkv, 0, heads_, head_dim_);
  Tensor k = heads_at(s.qkv, heads_, kv_heads_, head_dim_);
  if (q_norm_) {
    s.q = ex.keep.allocate({tokens, heads_, head_dim_}, dtype, "attention.q");
    s.k = ex.keep.allocate({tokens, kv_heads_, head_dim_}, dtype, "attention.k");
    q_norm_->forward(ex, q, s.q, s.q_norm);
    k_norm_->forward(ex, k, s.k, s.k_norm);
    q = s.q;
    k = s.k;
  }
  if (q_norm_) {
    rotate(ex, micro, q, false);
    rotate(ex, micro, k, false);
  } else {
    // They lie side by side: one pass turns both.
    rotate(ex, micro, heads_at(s.qkv, 0, heads_ + kv_heads_, head_dim_), false);
  }

  Arena& arena = recompute_ ? ex.scratch : ex.keep;
  const Tensor out = arena.allocate({tokens, heads_, head_dim_}, dtype, "attention.out");
  const Tensor lse = arena.allocate({micro.sequences, heads_, micro.length}, accumulation_of(dtype),
                                    "attention.lse");
  env.attention.forward(ex, layer_, input(env, micro, heads_of(s)), out, lse);
  s.out = recompute_ ? Tensor{} : out;
  s.lse = recompute_ ? Tensor{} : lse;

  const Tensor partial = env.tensor.partial_buffer(ex, y);
  out_.forward(ex, env, as_rows(out), partial, residual);
  env.tensor.leave(ex, partial, y);
}

void Attention::backward(Exec& ex, ModelEnv& env, const MicroBatch& micro, ConstTensor x,
                         ConstTensor dy, bool dy_summed, Tensor dx, const Saved& s) {
  ArenaScope scope(ex.scratch);
  Arena& operands = env.operands(ex);
  const ConstTensor dall = env.tensor.leave_backward(ex, dy, operands);
  const ConstTensor all = env.tensor.enter(ex, x, operands);
  const int64_t tokens = all.rows();
  const DType dtype = dx.dtype;
  const Heads heads = heads_of(s);
  const ops::AttentionInput in = input(env, micro, heads);

  Tensor out = s.out, lse = s.lse;
  if (recompute_) {
    out = operands.allocate({tokens, heads_, head_dim_}, dtype, "attention.out");
    lse = ex.scratch.allocate({micro.sequences, heads_, micro.length}, accumulation_of(dtype),
                              "attention.lse");
    env.attention.forward(ex, layer_, in, out, lse);
  }

  const Tensor dout = ex.scratch.allocate(out.shape, dtype, "attention.dout");
  out_.backward_input(ex, dall, as_rows(dout));
  out_.backward_weight(ex, env, dall, as_rows(out), dy_summed);

  const Tensor dqkv = operands.allocate(s.qkv.shape, dtype, "attention.dqkv");
  const Tensor dq = heads_at(dqkv, 0, heads_, head_dim_);
  const Tensor dk = heads_at(dqkv, heads_, kv_heads_, head_dim_);
  const Tensor dv = heads_at(dqkv, heads_ + kv_heads_, kv_heads_, head_dim_);
  env.attention.backward(ex, in, dout, out, lse, {.dq = dq, .dk = dk, .dv = dv});
  rotate(ex, micro, heads_at(dqkv, 0, heads_ + kv_heads_, head_dim_), true);
  if (q_norm_) {
    const ConstTensor qkv = s.qkv;
    q_norm_->backward(ex, dq, heads_at(qkv, 0, heads_, head_dim_), s.q_norm, {}, dq);
    k_norm_->backward(ex, dk, heads_at(qkv, heads_, kv_heads_, head_dim_), s.k_norm, {}, dk);
  }

  qkv_.backward_weight(ex, env, dqkv, all);
  const Tensor partial = env.tensor.partial_buffer(ex, dx);
  qkv_.backward_input(ex, dqkv, partial);
  env.tensor.enter_backward(ex, partial, dx);
}

}  // namespace bev
