#include "model/pair_head.h"

#include <array>
#include <numeric>

#include "model/head_rows.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"

namespace bev {

PairHead::PairHead(ParamStore& params, const PairHeadSpec& spec)
    : embedding_(spec.projection > 0 ? spec.projection : spec.width),
      scale_(spec.scale),
      loss_(spec.loss),
      top_k_(spec.top_k),
      buffer_(params.device(), static_cast<size_t>(spec.pairs) * sizeof(int32_t), "constants"),
      pairs_(tensor_over(buffer_.data(), DType::i32, {spec.pairs})) {
  if (spec.projection > 0) {
    bucket_ = params.begin_bucket();
    for (const std::string& tower : spec.towers)
      projections_.emplace_back(params, LinearSpec{.name = tower + "projection",
                                                   .in = spec.width,
                                                   .out = spec.projection,
                                                   .init = spec.init});
  }
  if (buffer_.data() == nullptr) return;
  std::vector<int32_t> pairs(static_cast<size_t>(spec.pairs));
  std::iota(pairs.begin(), pairs.end(), 0);
  params.device().upload(pairs.data(), buffer_.data(), bytes_of(pairs_));
}

PairHead::Embedded PairHead::embed(Exec& ex, const ModelEnv& env, size_t tower,
                                   const TextView& text, ConstTensor x) const {
  Embedded out{.rows = take_rows(ex, env.borders.tensor, text.tokens_count(), x, text.pooled)};
  out.values = out.rows;
  if (projections_.empty()) return out;
  out.values = ex.scratch.allocate({out.rows.rows(), embedding_}, x.dtype, "pairs.embedding");
  projections_[tower].forward(ex, out.rows, out.values);
  return out;
}

void PairHead::forward(Exec& ex, ModelEnv& env, std::span<const Tower> towers) const {
  ArenaScope scope(ex.scratch);
  const bool trains = towers.front().dx.present();
  if (bucket_) env.gather(ex, *bucket_);
  std::array<Embedded, 2> embedded;
  std::array<Tensor, 2> gradients;
  for (size_t i = 0; i < towers.size(); ++i) {
    embedded[i] = embed(ex, env, i, towers[i].text, towers[i].x);
    const Tensor& values = embedded[i].values;
    if (trains) gradients[i] = ex.scratch.allocate(values.shape, values.dtype, "pairs.gradient");
  }
  const int64_t pairs = towers.front().text.label_weight.shape[0];
  const auto queries_of = [&](const Tensor& t) { return slice(t, 0, 0, pairs); };
  const auto contexts_of = [&](const Tensor& t) { return slice(t, 0, t.rows() - pairs, pairs); };
  const size_t last = towers.size() - 1;
  compare(ex, env, towers.front().text.label_weight, queries_of(embedded[0].values),
          contexts_of(embedded[last].values), trains ? queries_of(gradients[0]) : Tensor{},
          trains ? contexts_of(gradients[last]) : Tensor{});
  if (!trains) return;
  if (bucket_) env.flow.begin_bucket(ex, *bucket_);
  for (size_t i = 0; i < towers.size(); ++i) {
    Tensor drows = gradients[i];
    if (bucket_) {
      const Tensor& rows = embedded[i].rows;
      drows = ex.scratch.allocate(rows.shape, rows.dtype, "pairs.drows");
      projections_[i].backward(ex, gradients[i], rows, drows);
    }
    const TextView& text = towers[i].text;
    put_rows(ex, env.borders.tensor, text.tokens_count(), drows, text.pooled, towers[i].dx);
  }
  if (bucket_) env.flow.end_bucket(ex, *bucket_);
}

// Each member compares its queries with the contexts of all, so the gradient of a context is a sum
// of terms from all members.
void PairHead::compare(Exec& ex, ModelEnv& env, ConstTensor weights, ConstTensor queries,
                       ConstTensor contexts, Tensor dqueries, Tensor dcontexts) const {
  const BatchRegion& batch = env.borders.batch;
  const ConstTensor all = batch.all_gather(ex, contexts);
  const int64_t pairs = queries.rows(), classes = all.rows();
  const DType dtype = queries.dtype, sums = accumulation_of(dtype);
  const Tensor scores = ex.scratch.allocate({pairs, classes}, sums, "pairs.scores");
  ops::matmul(ex, {.a = queries, .b = all, .tb = ops::Transpose::Yes, .out = scores});
  if (scale_ != 1) ops::scale(ex, {.x = scores, .factor = scale_, .y = scores});

  const ConstTensor own = slice(pairs_, 0, batch.first_row(pairs), pairs);
  const Tensor values = ex.scratch.allocate({pairs}, sums, "pairs.values");
  const auto add_to = [&](int loss) {
    ops::weighted_sum(ex, {.x = values,
                           .weight = weights,
                           .scale = env.losses.share(loss),
                           .out = env.losses.sum(loss)});
  };
  int accuracy = loss_;
  for (const int64_t k : top_k_) {
    ops::top_k_hits(ex, {.logits = scores, .targets = own, .k = k, .value = 100, .hits = values});
    add_to(++accuracy);
  }
  ops::cross_entropy(ex, {.logits = scores,
                          .targets = own,
                          .weight = weights,
                          .classes = classes,
                          .grad_scale = env.losses.factor(loss_),
                          .loss = values,
                          .dlogits = dqueries.present() ? scores : Tensor{}});
  add_to(loss_);
  if (!dqueries.present()) return;

  if (scale_ != 1) ops::scale(ex, {.x = scores, .factor = scale_, .y = scores});
  Tensor dscores = scores;
  if (dtype != sums) {
    dscores = ex.scratch.allocate(scores.shape, dtype, "pairs.dscores");
    ops::copy(ex, {.in = scores, .out = dscores});
  }
  ops::matmul(ex, {.a = dscores, .b = all, .out = dqueries});
  const Tensor dall = ex.scratch.allocate(all.shape, sums, "pairs.dcontexts");
  ops::matmul(ex, {.a = dscores, .b = queries, .ta = ops::Transpose::Yes, .out = dall});
  ops::copy(ex, {.in = batch.reduce_scatter(ex, dall), .out = dcontexts});
}

}  // namespace bev
