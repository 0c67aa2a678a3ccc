#include "model/lm_head.h"

#include <algorithm>

#include "model/embedding.h"
#include "ops/reduce.h"

namespace bev {

namespace {

using ops::Transpose;

// If this rank has the whole vocabulary, there are no statistics to combine.
void cross_entropy_of(Exec& ex, const TensorRegion& region, ops::CrossEntropy rows) {
  if (region.vocab_is_sharded()) {
    const Tensor stats = ex.scratch.allocate({rows.logits.rows(), ops::kSoftmaxStats},
                                             accumulation_of(rows.logits.dtype), "head.stats");
    ops::softmax_stats(ex, {.logits = rows.logits,
                            .targets = rows.targets,
                            .column_begin = rows.column_begin,
                            .stats = stats});
    ops::merge_softmax_stats(ex, {.parts = region.all_gather_parts(ex, stats), .stats = stats});
    rows.stats = stats;
  }
  ops::cross_entropy(ex, rows);
}

}  // namespace

LmHead::LmHead(ParamStore& params, const LmHeadSpec& spec)
    : loss_(spec.loss),
      chunk_(spec.chunk),
      classes_(spec.table.rows),
      smoothing_(spec.smoothing),
      z_loss_(spec.z_loss),
      weight_(declare_table(params, spec.table)) {}

void LmHead::forward(Exec& ex, ModelEnv& env, const MicroBatch& micro, ConstTensor x,
                     Tensor dx) const {
  ArenaScope whole(ex.scratch);
  env.gather(ex, weight_.bucket);
  if (dx.present()) env.flow.begin_bucket(ex, weight_.bucket);
  const ConstTensor all = env.borders.tensor.enter(ex, x, ex.scratch);
  const Tensor partial = dx.present() ? env.borders.tensor.partial_buffer(ex, dx) : Tensor{};
  const int64_t tokens = all.rows();
  for (int64_t begin = 0; begin < tokens; begin += chunk_) {
    ArenaScope scope(ex.scratch);
    const int64_t count = std::min(chunk_, tokens - begin);
    const ConstTensor rows = slice(all, 0, begin, count);
    const ConstTensor targets = slice(micro.targets, 0, begin, count);
    const ConstTensor weights = slice(micro.weight, 0, begin, count);
    const Tensor chunk = ex.scratch.allocate({count, weight_.value.rows()}, x.dtype, "head.logits");
    const Tensor loss = ex.scratch.allocate({count}, accumulation_of(x.dtype), "head.loss");

    ops::matmul(ex, {.a = rows, .b = weight_.value, .tb = Transpose::Yes, .out = chunk});
    cross_entropy_of(ex, env.borders.tensor,
                     {.logits = chunk,
                      .targets = targets,
                      .weight = weights,
                      .column_begin = weight_.pieces.front().logical.row,
                      .classes = classes_,
                      .smoothing = env.pass.training ? smoothing_ : 0.0,
                      .z_loss = env.pass.training ? z_loss_ : 0.0,
                      .grad_scale = env.losses.factor(loss_),
                      .loss = loss,
                      .dlogits = dx.present() ? chunk : Tensor{}});
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
