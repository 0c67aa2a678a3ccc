#include "model/block.h"

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
      norm2_(params, spec.name + ".norm2", spec.attention.width, spec.norm),
      mlp_(params, spec.name + ".mlp", spec.mlp) {}

bool Block::can_fuse_residual(const ModelEnv& env) const {
  const bool drops = attention_dropout_.probability > 0 || mlp_dropout_.probability > 0;
  return !(env.pass.training && drops) && env.borders.tensor.rows_unchanged();
}

Tensor Block::output_bias_grad(const ModelEnv& env) const {
  return pre_norm_ && can_fuse_residual(env) ? mlp_.params().down.bias_grad() : Tensor{};
}

void Block::forward(Exec& ex, ModelEnv& env, const MicroBatch& micro, ConstTensor x, Tensor y,
                    Saved& s) const {
  if (!pre_norm_) return forward_post_norm(ex, env, micro, x, y, s);
  ArenaScope scope(ex.scratch);
  s.x = x;
  Arena& norms = recompute_norms_ ? ex.scratch : ex.keep;
  const Tensor normed1 = norms.allocate(x.shape, x.dtype, "block.normed1");
  norm1_.forward(ex, x, normed1, s.norm1);
  s.sum = ex.keep.allocate(x.shape, x.dtype, "block.sum");
  const Tensor normed2 = norms.allocate(x.shape, x.dtype, "block.normed2");
  if (can_fuse_residual(env)) {
    // The GEMMs add the residual.
    attention_.forward(ex, env, micro, normed1, x, s.sum, s.attention);
    norm2_.forward(ex, s.sum, normed2, s.norm2);
    mlp_.forward(ex, env, normed2, s.sum, y, s.mlp);
  } else {
    const Tensor attended = ex.scratch.allocate(x.shape, x.dtype, "block.attended");
    attention_.forward(ex, env, micro, normed1, {}, attended, s.attention);
    norm2_.forward_residual(ex, x, attended, env.dropout(attention_dropout_, micro.rows), s.sum,
                            normed2, s.norm2);
    mlp_.forward(ex, env, normed2, {}, y, s.mlp);
    if (y.present())
      ops::residual_add(ex, {.residual = s.sum,
                             .delta = y,
                             .dropout = env.dropout(mlp_dropout_, micro.rows),
                             .out = y});
  }
  s.normed1 = recompute_norms_ ? Tensor{} : normed1;
  s.normed2 = recompute_norms_ ? Tensor{} : normed2;
}

void Block::backward(Exec& ex, ModelEnv& env, const MicroBatch& micro, Gradient dy,
                     GradientTarget dx, const Saved& s) const {
  if (!pre_norm_) return backward_post_norm(ex, env, micro, dy, dx, s);
  ArenaScope scope(ex.scratch);
  const Shape& shape = dx.values.shape;
  const DType dtype = dx.values.dtype;
  const Tensor dnormed = ex.scratch.allocate(shape, dtype, "block.dnormed");
  Arena& operands = env.flow.operands(ex);
  const Tensor dsum = operands.allocate(shape, dtype, "block.dsum");
  Tensor normed1 = s.normed1, normed2 = s.normed2;
  if (recompute_norms_) {
    normed2 = operands.allocate(shape, dtype, "block.normed");
    // One buffer serves both, unless deferred weight gradients of the MLP still read norm2's
    // output.
    normed1 = env.flow.defers() ? operands.allocate(shape, dtype, "block.normed") : normed2;
    norm2_.recompute(ex, s.sum, normed2);
  }
  {
    ArenaScope inner(ex.scratch);
    const Gradient dmlp = dropout_backward(ex, operands, dy, env.dropout(mlp_dropout_, micro.rows));
    mlp_.backward(ex, env, dmlp, normed2, dnormed, s.mlp);
  }
  const Tensor out_bias_grad =
      can_fuse_residual(env) ? attention_.params().out.bias_grad() : Tensor{};
  norm2_.backward(ex, dnormed, s.sum, s.norm2, dy.values, {dsum, out_bias_grad});

  if (recompute_norms_) norm1_.recompute(ex, s.x, normed1);
  {
    ArenaScope inner(ex.scratch);
    const Gradient dattended = dropout_backward(ex, operands, {dsum, out_bias_grad.present()},
                                                env.dropout(attention_dropout_, micro.rows));
    attention_.backward(ex, env, micro, dattended, normed1, dnormed, s.attention);
  }
  norm1_.backward(ex, dnormed, s.x, s.norm1, dsum, dx);
}

// h = norm1(x + attention(x)), y = norm2(h + mlp(h))
void Block::forward_post_norm(Exec& ex, ModelEnv& env, const MicroBatch& micro, ConstTensor x,
                              Tensor y, Saved& s) const {
  ArenaScope scope(ex.scratch);
  s.x = x;
  s.sum = ex.keep.allocate(x.shape, x.dtype, "block.sum");
  s.normed1 = ex.keep.allocate(x.shape, x.dtype, "block.normed1");
  s.sum2 = ex.keep.allocate(x.shape, x.dtype, "block.sum2");
  const Tensor branch = ex.scratch.allocate(x.shape, x.dtype, "block.branch");
  attention_.forward(ex, env, micro, x, {}, branch, s.attention);
  norm1_.forward_residual(ex, x, branch, env.dropout(attention_dropout_, micro.rows), s.sum,
                          s.normed1, s.norm1);
  mlp_.forward(ex, env, s.normed1, {}, branch, s.mlp);
  const Tensor out = y.present() ? y : ex.scratch.allocate(x.shape, x.dtype, "block.out");
  norm2_.forward_residual(ex, s.normed1, branch, env.dropout(mlp_dropout_, micro.rows), s.sum2, out,
                          s.norm2);
}

void Block::backward_post_norm(Exec& ex, ModelEnv& env, const MicroBatch& micro, Gradient dy,
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
                dropout_backward(ex, operands, {dsum2}, env.dropout(mlp_dropout_, micro.rows)),
                s.normed1, dbranch, s.mlp);
  ops::residual_add(ex, {.residual = dsum2, .delta = dbranch, .out = dbranch});
  norm1_.backward(ex, dbranch, s.sum, s.norm1, {}, {dsum});
  attention_.backward(
      ex, env, micro,
      dropout_backward(ex, operands, {dsum}, env.dropout(attention_dropout_, micro.rows)), s.x,
      dbranch, s.attention);
  ops::residual_add(ex, {.residual = dsum, .delta = dbranch, .out = dx.values});
}

}  // namespace bev
