#include "model/lm_head.h"

#include <algorithm>

#include "base/check.h"
#include "model/embedding.h"
#include "model/head_rows.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"

namespace bev {

namespace {

using ops::Transpose;

// If the vocabulary is not sharded, there are no statistics to combine.
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

LogitLoss::LogitLoss(ParamStore& params, const LmHeadSpec& spec)
    : loss_(spec.loss),
      chunk_(spec.chunk),
      classes_(spec.table.rows),
      smoothing_(spec.smoothing),
      z_loss_(spec.z_loss),
      weight_(declare_table(params, spec.table)) {}

void LogitLoss::run(Exec& ex, ModelEnv& env, ConstTensor x, ConstTensor targets,
                    ConstTensor weights, ConstTensor bias, Tensor dbias, Tensor dx) const {
  const int64_t first_class = weight_.pieces.front().logical.row;
  const int64_t columns = std::min(weight_.value.rows(), env.pass.classes - first_class);
  BEV_CHECK(columns == weight_.value.rows() || (columns > 0 && !dx.present()), Internal,
            "logits of {} of {} classes", columns, weight_.value.rows());
  const ConstTensor table = slice(ConstTensor(weight_.value), 0, 0, columns);
  if (bias.present()) bias = slice(bias, 0, 0, columns);
  for (int64_t begin = 0; begin < x.rows(); begin += chunk_) {
    ArenaScope scope(ex.scratch);
    const int64_t count = std::min(chunk_, x.rows() - begin);
    const ConstTensor rows = slice(x, 0, begin, count);
    const ConstTensor row_weights = slice(weights, 0, begin, count);
    const Tensor chunk = ex.scratch.allocate({count, columns}, x.dtype, "head.logits");
    const Tensor loss = ex.scratch.allocate({count}, accumulation_of(x.dtype), "head.loss");

    ops::matmul(ex, {.a = rows,
                     .b = table,
                     .tb = Transpose::Yes,
                     .out = chunk,
                     .epilogue = bias.present() ? ops::Epilogue::Bias : ops::Epilogue::None,
                     .bias = bias});
    cross_entropy_of(ex, env.borders.tensor,
                     {.logits = chunk,
                      .targets = slice(targets, 0, begin, count),
                      .weight = row_weights,
                      .column_begin = first_class,
                      .classes = std::min(classes_, env.pass.classes),
                      .smoothing = env.pass.training ? smoothing_ : 0.0,
                      .z_loss = env.pass.training ? z_loss_ : 0.0,
                      .grad_scale = env.losses.factor(loss_),
                      .loss = loss,
                      .dlogits = dx.present() ? chunk : Tensor{}});
    ops::weighted_sum(ex, {.x = loss,
                           .weight = row_weights,
                           .scale = env.losses.share(loss_),
                           .out = env.losses.sum(loss_)});
    if (!dx.present()) continue;
    ops::matmul(ex, {.a = chunk, .b = table, .out = slice(dx, 0, begin, count)});
    // At once: deferred gradients would keep the logits of all chunks.
    GemmGrad{&weight_,
             {.a = chunk, .b = rows, .ta = Transpose::Yes, .out = weight_.grad, .dbias = dbias}}
        .compute(ex);
  }
}

HeadBias::HeadBias(ParamStore& params, const std::string& name, int64_t classes)
    : bias_(params.declare({.name = name,
                            .shape = {classes},
                            .role = Role::HeadBias,
                            .place = {.cut = Cut{.dim = 0, .axis = Axis::Tensor}},
                            .init = {Init::Kind::Zeros}})) {}

Tensor HeadBias::begin_backward(Exec& ex) const {
  const Tensor sums =
      ex.scratch.allocate(bias_.value.shape, accumulation_of(bias_.value.dtype), "head.dbias");
  ops::fill(ex, {.out = sums, .value = 0});
  return sums;
}

void HeadBias::backward(Exec& ex, ConstTensor sums) const {
  const Shape row{1, sums.shape[0]};
  const Tensor grad = reshape(bias_.grad, row);
  ops::residual_add(ex, {.residual = grad, .delta = reshape(sums, row), .out = grad});
}

LmHead::LmHead(ParamStore& params, const LmHeadSpec& spec)
    : logits_(params, spec), input_scale_(spec.input_scale) {
  if (spec.bias.empty()) return;
  params.begin_bucket();
  bias_.emplace(params, spec.bias, spec.table.rows);
}

std::vector<int> LmHead::gather_order() const {
  if (!bias_) return {logits_.bucket()};
  return {bias_->param().bucket, logits_.bucket()};
}

void LmHead::forward(Exec& ex, ModelEnv& env, const TextView& text, ConstTensor x,
                     Tensor dx) const {
  ArenaScope scope(ex.scratch);
  const TensorRegion& region = env.borders.tensor;
  ConstTensor bias;
  Tensor dbias;
  if (bias_) {
    env.gather(ex, bias_->param().bucket);
    bias = env.keep_value(ex, bias_->param());
    if (dx.present()) dbias = bias_->begin_backward(ex);
  }
  env.gather(ex, logits_.bucket());
  if (dx.present()) env.flow.begin_bucket(ex, logits_.bucket());
  if (input_scale_ != 1) {
    const Tensor scaled = ex.scratch.allocate(x.shape, x.dtype, "head.input");
    ops::scale(ex, {.x = x, .factor = input_scale_, .y = scaled});
    x = scaled;
  }
  const ConstTensor all = region.enter(ex, x, ex.scratch);
  const Tensor partial = dx.present() ? region.partial_buffer(ex, dx) : Tensor{};
  logits_.run(ex, env, all, text.targets, text.weight, bias, dbias, partial);
  if (!dx.present()) return;
  region.leave(ex, partial, dx);
  if (input_scale_ != 1) ops::scale(ex, {.x = dx, .factor = input_scale_, .y = dx});
  env.flow.end_bucket(ex, logits_.bucket());
  if (!bias_) return;
  env.flow.begin_bucket(ex, bias_->param().bucket);
  bias_->backward(ex, dbias);
  env.flow.end_bucket(ex, bias_->param().bucket);
}

MaskedLmHead::MaskedLmHead(ParamStore& params, const MaskedLmHeadSpec& spec)
    : logits_(params, spec.logits),
      bucket_(params.begin_bucket()),
      activation_(spec.activation),
      dense_(params, {.name = spec.name + ".dense",
                      .in = spec.logits.table.width,
                      .out = spec.logits.table.width,
                      .init = spec.init}),
      norm_(params, spec.name + ".norm", spec.logits.table.width, spec.norm),
      bias_(params, spec.name + ".bias", spec.logits.table.rows) {}

MaskedLmHead::Transformed MaskedLmHead::transform(Exec& ex, const ModelEnv& env, int64_t tokens,
                                                  ConstTensor x, ConstTensor ids) const {
  Transformed out{.rows = take_rows(ex, env.borders.tensor, tokens, x, ids)};
  const auto make = [&](const char* name) {
    return ex.scratch.allocate(out.rows.shape, out.rows.dtype, name);
  };
  out.argument = make("head.argument");
  out.activated = make("head.activated");
  out.normed = make("head.normed");
  dense_.forward(ex, out.rows, out.activated, {.kind = activation_, .input = out.argument});
  Exec brief = ex.with_keep(ex.scratch);
  norm_.forward(brief, out.activated, out.normed, out.norm);
  return out;
}

void MaskedLmHead::forward(Exec& ex, ModelEnv& env, const TextView& text, ConstTensor x,
                           Tensor dx) const {
  ArenaScope scope(ex.scratch);
  const TensorRegion& region = env.borders.tensor;
  const int64_t tokens = text.tokens_count();
  env.gather(ex, bucket_);
  const Transformed in = transform(ex, env, tokens, x, text.marked);
  const auto make = [&](const char* name) {
    return ex.scratch.allocate(in.rows.shape, in.rows.dtype, name);
  };
  const ConstTensor bias = env.keep_value(ex, bias_.param());
  env.gather(ex, logits_.bucket());
  const Tensor dnormed = dx.present() ? make("head.dnormed") : Tensor{};
  Tensor dbias;
  if (dx.present()) {
    dbias = bias_.begin_backward(ex);
    env.flow.begin_bucket(ex, logits_.bucket());
  }
  logits_.run(ex, env, in.normed, text.targets, text.weight, bias, dbias, dnormed);
  env.gather(ex, bucket_);
  if (!dx.present()) return;
  env.flow.end_bucket(ex, logits_.bucket());
  region.sum_terms(ex, dnormed);

  env.flow.begin_bucket(ex, bucket_);
  bias_.backward(ex, dbias);
  const Tensor dactivated = make("head.dactivated"), drows = make("head.drows");
  norm_.backward(ex, dnormed, in.activated, in.norm, {}, {dactivated});
  ops::activate_backward(
      ex, {.activation = activation_, .dy = dactivated, .x = in.argument, .dx = dactivated});
  dense_.backward(ex, dactivated, in.rows, drows);
  env.flow.end_bucket(ex, bucket_);
  put_rows(ex, region, tokens, drows, text.marked, dx);
}

Classifier::Classifier(ParamStore& params, const ClassifierSpec& spec)
    : bucket_(params.begin_bucket()),
      loss_(spec.loss),
      classes_(spec.classes),
      pooler_(
          params,
          {.name = spec.name + ".pooler", .in = spec.width, .out = spec.width, .init = spec.init}),
      output_(params, {.name = spec.name + ".output",
                       .in = spec.width,
                       .out = spec.classes,
                       .init = spec.init}) {}

Classifier::Classified Classifier::classify(Exec& ex, const ModelEnv& env, int64_t tokens,
                                            ConstTensor x, ConstTensor ids) const {
  Classified out{.rows = take_rows(ex, env.borders.tensor, tokens, x, ids)};
  out.argument = ex.scratch.allocate(out.rows.shape, x.dtype, "classifier.argument");
  out.pooled = ex.scratch.allocate(out.rows.shape, x.dtype, "classifier.pooled");
  pooler_.forward(ex, out.rows, out.pooled, {.kind = Activation::Tanh, .input = out.argument});
  out.logits = ex.scratch.allocate({ids.shape[0], classes_}, x.dtype, "classifier.logits");
  output_.forward(ex, out.pooled, out.logits);
  return out;
}

void Classifier::forward(Exec& ex, ModelEnv& env, const TextView& text, ConstTensor x,
                         Tensor dx) const {
  ArenaScope scope(ex.scratch);
  const TensorRegion& region = env.borders.tensor;
  const int64_t tokens = text.tokens_count(), sequences = text.sequences;
  env.gather(ex, bucket_);
  const auto [rows, argument, pooled, logits] = classify(ex, env, tokens, x, text.pooled);
  const Tensor loss = ex.scratch.allocate({sequences}, accumulation_of(x.dtype), "classifier.loss");
  ops::cross_entropy(ex, {.logits = logits,
                          .targets = text.label,
                          .weight = text.label_weight,
                          .classes = classes_,
                          .grad_scale = env.losses.factor(loss_),
                          .loss = loss,
                          .dlogits = dx.present() ? logits : Tensor{}});
  ops::weighted_sum(ex, {.x = loss,
                         .weight = text.label_weight,
                         .scale = env.losses.share(loss_),
                         .out = env.losses.sum(loss_)});
  if (!dx.present()) return;
  env.flow.begin_bucket(ex, bucket_);
  const Tensor dpooled = ex.scratch.allocate(rows.shape, x.dtype, "classifier.dpooled");
  const Tensor drows = ex.scratch.allocate(rows.shape, x.dtype, "classifier.drows");
  output_.backward(ex, logits, pooled, dpooled);
  ops::activate_backward(
      ex, {.activation = Activation::Tanh, .dy = dpooled, .x = argument, .dx = dpooled});
  pooler_.backward(ex, dpooled, rows, drows);
  env.flow.end_bucket(ex, bucket_);
  put_rows(ex, region, tokens, drows, text.pooled, dx);
}

}  // namespace bev
