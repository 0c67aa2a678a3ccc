#include "model/block.h"

#include "base/check.h"

namespace bev {

namespace {

// The gradient before dropout: dy itself if nothing is dropped, else in the arena.
Gradient dropout_backward(Exec& ex, Arena& arena, Gradient dy, const ops::Dropout& dropout) {
  if (dropout.probability == 0) return dy;
  const Tensor d = arena.allocate(dy.values.shape, dy.values.dtype, "block.dropout_backward");
  ops::dropout(ex, {.x = dy.values, .dropout = dropout, .y = d});
  return {d};
}

}  // namespace

Block::Block(ParamStore& params, const BlockSpec& spec, const RopeTable* rope)
    : bucket_(params.begin_bucket()),
      pre_norm_(spec.pre_norm),
      recompute_norms_(spec.recompute_norms),
      attention_dropout_(spec.attention_dropout),
      mlp_dropout_(spec.mlp_dropout),
      norm1_(params, spec.name + ".norm1", spec.attention.width, spec.norm),
      attention_(params, spec.name + ".attention", spec.attention, spec.number, rope),
      cross_(spec.cross
                 ? std::optional<Cross>(
                       {NormModule(params, spec.name + ".cross_norm", spec.cross->width, spec.norm),
                        CrossAttention(params, spec.name + ".cross_attention", *spec.cross,
                                       spec.number),
                        spec.cross_dropout})
                 : std::nullopt),
      norm2_(params, spec.name + ".norm2", spec.attention.width, spec.norm),
      mlp_(params, spec.name + ".mlp", spec.mlp) {
  BEV_CHECK(pre_norm_ || !cross_, Internal, "cross attention needs a pre-norm block");
}

BlockParams Block::params() const {
  BlockParams params{norm1_.params(), attention_.params(), {}, norm2_.params(), mlp_.params()};
  if (cross_) params.cross.emplace(cross_->norm.params(), cross_->attention.params());
  return params;
}

bool Block::can_fuse_residual(const ModelEnv& env) const {
  const bool drops = attention_dropout_.probability > 0 || mlp_dropout_.probability > 0 ||
                     (cross_ && cross_->dropout.probability > 0);
  return !(env.pass.training && drops) && env.borders.tensor.rows_unchanged();
}

Tensor Block::output_bias_grad(const ModelEnv& env) const {
  return pre_norm_ && can_fuse_residual(env) ? mlp_.params().down.bias_grad() : Tensor{};
}

void Block::forward(Exec& ex, ModelEnv& env, const BlockInputs& in, ConstTensor x, Tensor y,
                    Saved& s) const {
  if (!pre_norm_) return forward_post_norm(ex, env, in, x, y, s);
  ArenaScope scope(ex.scratch);
  s.x = x;
  const bool fuses = can_fuse_residual(env);
  const auto make = [&](Arena& arena, const char* name) {
    return arena.allocate(x.shape, x.dtype, name);
  };
  // sum = residual + dropout(branch), normed = norm(sum). branch(residual, out) adds the residual
  // unless it is absent.
  const auto join = [&](auto&& branch, ConstTensor residual, const DropoutSpec& dropout,
                        const NormModule& norm, Tensor sum, Tensor normed,
                        NormModule::Saved& saved) {
    if (fuses) {
      branch(residual, sum);
      norm.forward(ex, sum, normed, saved);
      return;
    }
    ArenaScope inner(ex.scratch);
    const Tensor alone = make(ex.scratch, "block.branch");
    branch(ConstTensor{}, alone);
    norm.forward_residual(ex, residual, alone, env.dropout(dropout, in.text.rows), sum, normed,
                          saved);
  };

  Arena& norms = recompute_norms_ ? ex.scratch : ex.keep;
  const Tensor normed1 = make(norms, "block.normed1");
  norm1_.forward(ex, x, normed1, s.norm1);
  s.sum = make(ex.keep, "block.sum");
  const Tensor normed2 = make(norms, "block.normed2");
  const Tensor cross_normed = cross_ ? make(norms, "block.cross_normed") : Tensor{};
  join(
      [&](ConstTensor residual, Tensor out) {
        attention_.forward(ex, env, in.text, in.bias, normed1, residual, out, s.attention);
      },
      x, attention_dropout_, cross_ ? cross_->norm : norm2_, s.sum, cross_ ? cross_normed : normed2,
      cross_ ? s.cross.norm : s.norm2);
  if (cross_) {
    s.cross.sum = make(ex.keep, "block.cross_sum");
    join(
        [&](ConstTensor residual, Tensor out) {
          cross_->attention.forward(ex, env, in.text, *in.context, cross_normed, residual, out,
                                    s.cross.attention);
        },
        s.sum, cross_->dropout, norm2_, s.cross.sum, normed2, s.norm2);
  }
  const ConstTensor sum = cross_ ? s.cross.sum : s.sum;
  mlp_.forward(ex, env, normed2, fuses ? sum : ConstTensor{}, y, s.mlp);
  if (y.present() && !fuses)
    ops::residual_add(ex, {.residual = sum,
                           .delta = y,
                           .dropout = env.dropout(mlp_dropout_, in.text.rows),
                           .out = y});
  s.normed1 = recompute_norms_ ? Tensor{} : normed1;
  s.normed2 = recompute_norms_ ? Tensor{} : normed2;
  s.cross.normed = recompute_norms_ ? Tensor{} : cross_normed;
}

void Block::backward(Exec& ex, ModelEnv& env, const BlockInputs& in, Gradient dy, GradientTarget dx,
                     Tensor dcontext, const Saved& s) const {
  if (!pre_norm_) return backward_post_norm(ex, env, in, dy, dx, s);
  ArenaScope scope(ex.scratch);
  Arena& operands = env.flow.operands(ex);
  const auto make = [&](Arena& arena, const char* name) {
    return arena.allocate(dx.values.shape, dx.values.dtype, name);
  };
  const Tensor dnormed = make(ex.scratch, "block.dnormed");
  const Tensor dsum = make(operands, "block.dsum");
  Tensor recomputed;
  const auto normed_of = [&](const Tensor& kept, const NormModule& norm, ConstTensor before) {
    if (!recompute_norms_) return kept;
    // One buffer serves all norms, unless deferred weight gradients still read their outputs.
    if (!recomputed.present() || env.flow.defers()) recomputed = make(operands, "block.normed");
    norm.recompute(ex, before, recomputed);
    return recomputed;
  };
  // The norm after a branch adds the bias gradient of the branch if it has the branch's gradient.
  const auto bias_grad_of = [&](const LinearParams& out) {
    return can_fuse_residual(env) ? out.bias_grad() : Tensor{};
  };

  const Tensor sum = cross_ ? s.cross.sum : s.sum;
  const Tensor normed2 = normed_of(s.normed2, norm2_, sum);
  {
    ArenaScope inner(ex.scratch);
    const Gradient dmlp =
        dropout_backward(ex, operands, dy, env.dropout(mlp_dropout_, in.text.rows));
    mlp_.backward(ex, env, dmlp, normed2, dnormed, s.mlp);
  }
  Tensor bias_grad =
      bias_grad_of(cross_ ? cross_->attention.params().out : attention_.params().out);
  norm2_.backward(ex, dnormed, sum, s.norm2, dy.values, {dsum, bias_grad});

  Tensor dattended = dsum;
  if (cross_) {
    const Tensor normed = normed_of(s.cross.normed, cross_->norm, s.sum);
    ArenaScope inner(ex.scratch);
    cross_->attention.backward(ex, env, in.text, *in.context,
                               dropout_backward(ex, operands, {dsum, bias_grad.present()},
                                                env.dropout(cross_->dropout, in.text.rows)),
                               normed, dnormed, dcontext, s.cross.attention);
    bias_grad = bias_grad_of(attention_.params().out);
    // Deferred weight gradients still read dsum.
    if (env.flow.defers()) dattended = make(operands, "block.dsum");
    cross_->norm.backward(ex, dnormed, s.sum, s.cross.norm, dsum, {dattended, bias_grad});
  }

  const Tensor normed1 = normed_of(s.normed1, norm1_, s.x);
  {
    ArenaScope inner(ex.scratch);
    attention_.backward(ex, env, in.text, in.bias,
                        dropout_backward(ex, operands, {dattended, bias_grad.present()},
                                         env.dropout(attention_dropout_, in.text.rows)),
                        normed1, dnormed, s.attention);
  }
  norm1_.backward(ex, dnormed, s.x, s.norm1, dattended, dx);
}

// h = norm1(x + attention(x)), y = norm2(h + mlp(h))
void Block::forward_post_norm(Exec& ex, ModelEnv& env, const BlockInputs& in, ConstTensor x,
                              Tensor y, Saved& s) const {
  ArenaScope scope(ex.scratch);
  s.x = x;
  s.sum = ex.keep.allocate(x.shape, x.dtype, "block.sum");
  s.normed1 = ex.keep.allocate(x.shape, x.dtype, "block.normed1");
  s.sum2 = ex.keep.allocate(x.shape, x.dtype, "block.sum2");
  const Tensor branch = ex.scratch.allocate(x.shape, x.dtype, "block.branch");
  attention_.forward(ex, env, in.text, in.bias, x, {}, branch, s.attention);
  norm1_.forward_residual(ex, x, branch, env.dropout(attention_dropout_, in.text.rows), s.sum,
                          s.normed1, s.norm1);
  mlp_.forward(ex, env, s.normed1, {}, branch, s.mlp);
  const Tensor out = y.present() ? y : ex.scratch.allocate(x.shape, x.dtype, "block.out");
  norm2_.forward_residual(ex, s.normed1, branch, env.dropout(mlp_dropout_, in.text.rows), s.sum2,
                          out, s.norm2);
}

void Block::backward_post_norm(Exec& ex, ModelEnv& env, const BlockInputs& in, Gradient dy,
                               GradientTarget dx, const Saved& s) const {
  ArenaScope scope(ex.scratch);
  const Shape& shape = dx.values.shape;
  const DType dtype = dx.values.dtype;
  Arena& operands = env.flow.operands(ex);
  const Tensor dsum2 = operands.allocate(shape, dtype, "block.dsum2");
  const Tensor dsum = operands.allocate(shape, dtype, "block.dsum");
  const Tensor dbranch = ex.scratch.allocate(shape, dtype, "block.dbranch");
  norm2_.backward(ex, dy.values, s.sum2, s.norm2, {}, {dsum2});
  mlp_.backward(ex, env,
                dropout_backward(ex, operands, {dsum2}, env.dropout(mlp_dropout_, in.text.rows)),
                s.normed1, dbranch, s.mlp);
  ops::residual_add(ex, {.residual = dsum2, .delta = dbranch, .out = dbranch});
  norm1_.backward(ex, dbranch, s.sum, s.norm1, {}, {dsum});
  attention_.backward(
      ex, env, in.text, in.bias,
      dropout_backward(ex, operands, {dsum}, env.dropout(attention_dropout_, in.text.rows)), s.x,
      dbranch, s.attention);
  ops::residual_add(ex, {.residual = dsum, .delta = dbranch, .out = dx.values});
}

}  // namespace bev
