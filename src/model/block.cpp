#include "model/block.h"

namespace bev {

namespace {

std::string layer_name(int64_t layer, const char* part) {
  return "layers." + std::to_string(layer) + "." + part;
}

// The gradient before dropout: dy itself when nothing is dropped, else from the arena.
ConstTensor dropout_backward(Exec& ex, Arena& arena, ConstTensor dy, const ops::Dropout& dropout) {
  if (dropout.probability == 0) return dy;
  const Tensor d = arena.allocate(dy.shape, dy.dtype, "block.dropout_backward");
  ops::dropout(ex, {.x = dy, .dropout = dropout, .y = d});
  return d;
}

}  // namespace

Block::Block(ParamStore& params, const ModelSpec& b, int64_t layer, const RopeTable& rope)
    : bucket_(params.begin_bucket()),
      recompute_norms_(b.config.recompute.granularity == Recompute::Selective &&
                       b.config.recompute.norm),
      dropout_(b.model().hidden_dropout),
      attention_key_(dropout_key(b.seed(), layer, DropoutSite::Attention)),
      mlp_key_(dropout_key(b.seed(), layer, DropoutSite::Mlp)),
      norm1_(params, layer_name(layer, "norm1"), b, b.shape.width, b.replica_between_regions()),
      attention_(params, layer_name(layer, "attention"), b, layer, rope),
      norm2_(params, layer_name(layer, "norm2"), b, b.shape.width, b.replica_between_regions()),
      mlp_(params, layer_name(layer, "mlp"), b) {}

ops::Dropout Block::dropout(const ModelEnv& env, const MicroBatch& micro, uint64_t key) const {
  return {.probability = env.training ? dropout_ : 0.0,
          .key = key,
          .rows = env.tensor.local_rows(micro.rows)};
}

bool Block::can_fuse_residual(const ModelEnv& env) const {
  return (!env.training || dropout_ == 0) && env.tensor.rows_unchanged();
}

Tensor Block::dy_sums(const ModelEnv& env) const {
  return can_fuse_residual(env) ? mlp_.output_bias_grad() : Tensor{};
}

void Block::forward(Exec& ex, ModelEnv& env, const MicroBatch& micro, ConstTensor x, Tensor y,
                    Saved& s) const {
  ArenaScope scope(ex.scratch);
  s.x = x;
  if (env.weights_constant && can_fuse_residual(env)) {
    // Nobody comes back for what lies between: norms are computed on the way into GEMMs.
    s.sum = ex.keep.allocate(x.shape, x.dtype, "block.sum");
    attention_.forward(ex, env, micro, x, x, s.sum, s.attention, norm1_.fused());
    mlp_.forward(ex, env, s.sum, s.sum, y, s.mlp, norm2_.fused());
    return;
  }
  Arena& norms = recompute_norms_ ? ex.scratch : ex.keep;
  const Tensor normed1 = norms.allocate(x.shape, x.dtype, "block.normed1");
  norm1_.forward(ex, x, normed1, s.norm1);
  s.sum = ex.keep.allocate(x.shape, x.dtype, "block.sum");
  const Tensor normed2 = norms.allocate(x.shape, x.dtype, "block.normed2");
  // What joins whole is added to the residual stream inside the GEMMs.
  if (can_fuse_residual(env)) {
    attention_.forward(ex, env, micro, normed1, x, s.sum, s.attention);
    norm2_.forward(ex, s.sum, normed2, s.norm2);
  } else {
    const Tensor attended = ex.scratch.allocate(x.shape, x.dtype, "block.attended");
    attention_.forward(ex, env, micro, normed1, {}, attended, s.attention);
    norm2_.forward_residual(ex, x, attended, dropout(env, micro, attention_key_), s.sum, normed2,
                            s.norm2);
  }
  if (can_fuse_residual(env)) {
    mlp_.forward(ex, env, normed2, s.sum, y, s.mlp);
  } else {
    mlp_.forward(ex, env, normed2, {}, y, s.mlp);
    if (y.present())
      ops::residual_add(
          ex, {.residual = s.sum, .delta = y, .dropout = dropout(env, micro, mlp_key_), .out = y});
  }
  s.normed1 = recompute_norms_ ? Tensor{} : normed1;
  s.normed2 = recompute_norms_ ? Tensor{} : normed2;
}

void Block::backward(Exec& ex, ModelEnv& env, const MicroBatch& micro, const Gradients& g,
                     const Saved& s) {
  ArenaScope scope(ex.scratch);
  const ConstTensor dy = g.dy;
  const Tensor dx = g.dx;
  const Tensor dnormed = ex.scratch.allocate(dx.shape, dx.dtype, "block.dnormed");
  Arena& operands = env.operands(ex);
  const Tensor dsum = operands.allocate(dx.shape, dx.dtype, "block.dsum");
  Tensor normed1 = s.normed1, normed2 = s.normed2;
  if (recompute_norms_) {
    normed2 = operands.allocate(dx.shape, dx.dtype, "block.normed");
    // One buffer serves both, unless the MLP's weight gradients still need norm2's output.
    normed1 = env.deferred_weight_grads == nullptr
                  ? normed2
                  : operands.allocate(dx.shape, dx.dtype, "block.normed");
    norm2_.recompute(ex, s.sum, normed2);
  }
  {
    ArenaScope inner(ex.scratch);
    const ConstTensor dmlp = dropout_backward(ex, operands, dy, dropout(env, micro, mlp_key_));
    mlp_.backward(ex, env, normed2, dmlp, g.dy_summed, dnormed, s.mlp);
  }
  const Tensor dsum_sums = can_fuse_residual(env) ? attention_.output_bias_grad() : Tensor{};
  norm2_.backward(ex, dnormed, s.sum, s.norm2, dy, dsum, dsum_sums);

  if (recompute_norms_) norm1_.recompute(ex, s.x, normed1);
  {
    ArenaScope inner(ex.scratch);
    const ConstTensor dattended =
        dropout_backward(ex, operands, dsum, dropout(env, micro, attention_key_));
    attention_.backward(ex, env, micro, normed1, dattended, dsum_sums.present(), dnormed,
                        s.attention);
  }
  norm1_.backward(ex, dnormed, s.x, s.norm1, dsum, dx, g.dx_sums);
}

}  // namespace bev
