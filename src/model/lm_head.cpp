#include "model/lm_head.h"

#include <algorithm>

#include "model/embedding.h"
#include "ops/reduce.h"

namespace bev {

namespace {

using ops::Transpose;

// Large enough that the head's matrix is read few times, small enough that the logits of a large
// vocabulary stay a small part of memory.
constexpr int64_t kHostChunk = 256, kGpuChunk = 8192;

double effective_smoothing(const ModelSpec& b) {
  const LossConfig& loss = b.config.loss;
  if (loss.smoothing == Smoothing::Torch) return loss.label_smoothing;
  const double classes = static_cast<double>(b.shape.padded_vocab);
  return loss.label_smoothing * classes / std::max(classes - 1, 1.0);
}

Param& declare_head(ParamStore& params, const ModelSpec& b) {
  if (b.model().tied) return params.declare_alone(token_table(b));
  return params.declare_alone({.name = kHeadWeight,
                               .shape = {b.shape.padded_vocab, b.shape.width},
                               .role = Role::Head,
                               .place = {.cut = Cut{.dim = 0, .axis = Axis::Tensor}},
                               .init = b.init()});
}

}  // namespace

int64_t head_chunk(const Config& config) {
  if (config.loss.chunk > 0) return config.loss.chunk;
  return config.device.kind == DeviceKind::Cuda ? kGpuChunk : kHostChunk;
}

LmHead::LmHead(ParamStore& params, const ModelSpec& b)
    : chunk_(head_chunk(b.config)),
      classes_(b.shape.padded_vocab),
      smoothing_(effective_smoothing(b)),
      z_loss_(b.config.loss.z_loss),
      shares_table_(b.model().tied && params.find(token_table(b).name) != nullptr),
      weight_(declare_head(params, b)) {}

void LmHead::logits(Exec& ex, const ModelEnv& env, ConstTensor x, Tensor logits) const {
  ops::matmul(ex, {.a = x,
                   .b = weight_.value,
                   .tb = Transpose::Yes,
                   .out = logits,
                   .b_is_constant = env.weights_constant});
}

ConstTensor LmHead::weight_in_use(const ModelEnv& env) const {
  if (env.classes == 0) return weight_.value;
  const int64_t begin = weight_.pieces.front().logical.row, held = weight_.value.shape[0];
  return slice(ConstTensor(weight_.value), 0, 0, std::min(held, env.classes - begin));
}

// Where the rows hold the whole vocabulary, there are no statistics to combine.
void LmHead::losses(Exec& ex, ModelEnv& env, const ops::CrossEntropy& rows, Tensor stats) const {
  const bool is_cut = env.tensor.vocab_is_sharded();
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
    ops::merge_softmax_stats(ex, {.parts = env.tensor.all_gather_parts(ex, stats), .stats = stats});
  ops::CrossEntropy merged = rows;
  merged.stats = stats;
  ops::cross_entropy(ex, merged);
}

void LmHead::forward(Exec& ex, ModelEnv& env, const MicroBatch& micro, ConstTensor x, Tensor dx) {
  ArenaScope whole(ex.scratch);
  env.gather(ex, weight_.bucket);
  if (dx.present()) env.begin_bucket_grads(ex, weight_.bucket);
  const ConstTensor all = env.tensor.enter(ex, x);
  const Tensor partial = dx.present() ? env.tensor.partial_buffer(ex, dx) : Tensor{};
  const int64_t tokens = all.rows();
  const ConstTensor weight = weight_in_use(env);
  for (int64_t begin = 0; begin < tokens; begin += chunk_) {
    ArenaScope scope(ex.scratch);
    const int64_t count = std::min(chunk_, tokens - begin);
    const ConstTensor rows = slice(all, 0, begin, count);
    const ConstTensor targets = slice(micro.targets, 0, begin, count);
    const ConstTensor weights = slice(micro.weight, 0, begin, count);
    const Tensor chunk = ex.scratch.allocate({count, weight.rows()}, x.dtype, "head.logits");
    const Tensor loss = env.token_losses.present()
                            ? slice(env.token_losses, 0, begin, count)
                            : ex.scratch.allocate({count}, accumulation_of(x.dtype), "head.loss");
    const Tensor stats =
        env.token_stats.present() ? slice(env.token_stats, 0, begin, count) : Tensor{};

    ops::matmul(ex, {.a = rows,
                     .b = weight,
                     .tb = Transpose::Yes,
                     .out = chunk,
                     .b_is_constant = env.weights_constant});
    losses(ex, env,
           {.logits = chunk,
            .targets = targets,
            .weight = weights,
            .column_begin = weight_.pieces.front().logical.row,
            .classes = env.classes > 0 ? env.classes : classes_,
            .smoothing = env.training ? smoothing_ : 0.0,
            .z_loss = env.training ? z_loss_ : 0.0,
            .grad_scale = env.grad_scale,
            .loss_scale = env.loss_scale,
            .loss = loss,
            .dlogits = dx.present() ? chunk : Tensor{}},
           stats);
    ops::weighted_sum(ex, {.x = loss, .weight = weights, .out = env.loss});
    if (!dx.present()) continue;
    ops::matmul(ex, {.a = chunk, .b = weight_.value, .out = slice(partial, 0, begin, count)});
    // Now: the logits of all chunks would be too much to keep.
    DeferredWeightGrad{&weight_, {.a = chunk, .b = rows, .ta = Transpose::Yes, .out = weight_.grad}}
        .compute(ex);
  }
  if (!dx.present()) return;
  env.tensor.leave(ex, partial, dx);
  env.end_bucket_grads(ex, weight_.bucket, shares_table_);
}

}  // namespace bev
