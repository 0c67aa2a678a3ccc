#include "model/lm_head.h"

#include <algorithm>

#include "model/embedding.h"
#include "ops/reduce.h"

namespace bev {

namespace {

using ops::Transpose;

}  // namespace

LmHead::LmHead(ParamStore& params, const LmHeadSpec& spec)
    : loss_(spec.loss),
      chunk_(spec.chunk),
      classes_(spec.table.rows),
      smoothing_(spec.smoothing),
      z_loss_(spec.z_loss),
      weight_(declare_table(params, spec.table)) {}

void LmHead::logits(Exec& ex, const ModelEnv& env, ConstTensor x, Tensor logits) const {
  ops::matmul(ex, {.a = x,
                   .b = weight_.value,
                   .tb = Transpose::Yes,
                   .out = logits,
                   .b_is_constant = env.pass.weights_constant});
}

ConstTensor LmHead::weight_in_use(const ModelEnv& env) const {
  if (env.losses.classes == 0) return weight_.value;
  const int64_t begin = weight_.pieces.front().logical.row, held = weight_.value.shape[0];
  return slice(ConstTensor(weight_.value), 0, 0, std::min(held, env.losses.classes - begin));
}

// If this rank has the whole vocabulary, there are no statistics to combine.
void LmHead::losses(Exec& ex, ModelEnv& env, const ops::CrossEntropy& rows, Tensor stats) const {
  const bool is_cut = env.borders.tensor.vocab_is_sharded();
  if (!is_cut && !stats.present()) {
    ops::cross_entropy(ex, rows);
    return;
  }
  const Shape shape{rows.logits.rows(), ops::kSoftmaxStats};
  if (!stats.present())
    stats = ex.scratch.allocate(shape, accumulation_of(rows.logits.dtype), "head.stats");
  ops::softmax_stats(ex, {.logits = rows.logits,
                          .targets = rows.targets,
                          .column_begin = rows.column_begin,
                          .stats = stats});
  if (is_cut)
    ops::merge_softmax_stats(
        ex, {.parts = env.borders.tensor.all_gather_parts(ex, stats), .stats = stats});
  ops::CrossEntropy merged = rows;
  merged.stats = stats;
  ops::cross_entropy(ex, merged);
}

void LmHead::forward(Exec& ex, ModelEnv& env, const MicroBatch& micro, ConstTensor x,
                     Tensor dx) const {
  ArenaScope whole(ex.scratch);
  env.gather(ex, weight_.bucket);
  if (dx.present()) env.flow.begin_bucket(ex, weight_.bucket);
  const ConstTensor all = env.borders.tensor.enter(ex, x, ex.scratch);
  const Tensor partial = dx.present() ? env.borders.tensor.partial_buffer(ex, dx) : Tensor{};
  const int64_t tokens = all.rows();
  const ConstTensor weight = weight_in_use(env);
  for (int64_t begin = 0; begin < tokens; begin += chunk_) {
    ArenaScope scope(ex.scratch);
    const int64_t count = std::min(chunk_, tokens - begin);
    const ConstTensor rows = slice(all, 0, begin, count);
    const ConstTensor targets = slice(micro.targets, 0, begin, count);
    const ConstTensor weights = slice(micro.weight, 0, begin, count);
    const Tensor chunk = ex.scratch.allocate({count, weight.rows()}, x.dtype, "head.logits");
    const Tensor loss = env.losses.token_losses.present()
                            ? slice(env.losses.token_losses, 0, begin, count)
                            : ex.scratch.allocate({count}, accumulation_of(x.dtype), "head.loss");
    const Tensor stats = env.losses.token_stats.present()
                             ? slice(env.losses.token_stats, 0, begin, count)
                             : Tensor{};

    ops::matmul(ex, {.a = rows,
                     .b = weight,
                     .tb = Transpose::Yes,
                     .out = chunk,
                     .b_is_constant = env.pass.weights_constant});
    losses(ex, env,
           {.logits = chunk,
            .targets = targets,
            .weight = weights,
            .column_begin = weight_.pieces.front().logical.row,
            .classes = env.losses.classes > 0 ? env.losses.classes : classes_,
            .smoothing = env.pass.training ? smoothing_ : 0.0,
            .z_loss = env.pass.training ? z_loss_ : 0.0,
            .grad_scale = env.losses.factor(loss_),
            .loss = loss,
            .dlogits = dx.present() ? chunk : Tensor{}},
           stats);
    ops::weighted_sum(ex, {.x = loss, .weight = weights, .out = env.losses.sum(loss_)});
    if (!dx.present()) continue;
    ops::matmul(ex, {.a = chunk, .b = weight_.value, .out = slice(partial, 0, begin, count)});
    // At once: deferred gradients would keep the logits of all chunks.
    GemmGrad{&weight_, {.a = chunk, .b = rows, .ta = Transpose::Yes, .out = weight_.grad}}.compute(
        ex);
  }
  if (!dx.present()) return;
  env.borders.tensor.leave(ex, partial, dx);
  env.flow.end_bucket(ex, weight_.bucket);
}

}  // namespace bev
