#include "base/format.h"
#include "bench/op_cases.h"
#include "ops/cross_entropy.h"
#include "ops/reduce.h"

namespace bev {

namespace {

std::string loss_shape(const CaseOperands& o) {
  return format("{} x {}", o.loss_rows, o.model.padded_vocab);
}

Tensor logits_of(const CaseOperands& o) { return o.value({o.loss_rows, o.model.padded_vocab}); }

Tensor weights_of(const CaseOperands& o) { return o.filled({o.loss_rows}, DType::f32, 1); }

}  // namespace

std::vector<OpCase> softmax_stats_cases(const CaseOperands& o) {
  const ops::SoftmaxStats s{.logits = logits_of(o),
                            .targets = o.ids(o.loss_rows, o.model.vocab),
                            .stats = o.sum({o.loss_rows, ops::kSoftmaxStats})};
  return {{loss_shape(o), [=](Exec& ex) { ops::softmax_stats(ex, s); }}};
}

// In place, as in the model: the gradient of a chunk takes the place of its logits. Once with
// statistics from elsewhere, as where a vocabulary is cut: those of rows with small probabilities,
// so that the gradient stays small when it is the next logits.
std::vector<OpCase> cross_entropy_cases(const CaseOperands& o) {
  const Tensor logits = logits_of(o);
  const ops::CrossEntropy c{.logits = logits,
                            .stats = {},
                            .targets = o.ids(o.loss_rows, o.model.vocab),
                            .weight = weights_of(o),
                            .classes = o.model.padded_vocab,
                            .loss_scale = o.filled({1}, DType::f64, 1),
                            .loss = o.sum({o.loss_rows}),
                            .dlogits = logits};
  ops::CrossEntropy cut = c;
  cut.stats = o.filled({o.loss_rows, ops::kSoftmaxStats}, o.sums, 10);
  return {{loss_shape(o), [=](Exec& ex) { ops::cross_entropy(ex, c); }},
          {loss_shape(o) + ", statistics given", [=](Exec& ex) { ops::cross_entropy(ex, cut); }}};
}

std::vector<OpCase> weighted_sum_cases(const CaseOperands& o) {
  const ops::WeightedSum s{
      .x = o.sum({o.loss_rows}), .weight = weights_of(o), .out = o.filled({2}, DType::f64, 0)};
  return {{format("{}", o.loss_rows), [=](Exec& ex) { ops::weighted_sum(ex, s); }}};
}

}  // namespace bev
