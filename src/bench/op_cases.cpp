#include "bench/op_cases.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/format.h"
#include "base/philox.h"
#include "model/family/family.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/reduce.h"

namespace bev {

namespace {

constexpr std::array kBenchedOps{
    BenchedOp{"matmul", matmul_cases},
    BenchedOp{"embedding", embedding_cases},
    BenchedOp{"norm", norm_cases},
    BenchedOp{"relative_bias", relative_bias_cases},
    BenchedOp{"rope", rope_cases},
    BenchedOp{"attention", attention_cases},
    BenchedOp{"residual_norm", residual_norm_cases},
    BenchedOp{"activate", activate_cases},
    BenchedOp{"residual_add", residual_add_cases},
    BenchedOp{"scale", scale_cases},
    BenchedOp{"top_k_hits", top_k_hits_cases},
    BenchedOp{"softmax_stats", softmax_stats_cases},
    BenchedOp{"cross_entropy", cross_entropy_cases},
    BenchedOp{"weighted_sum", weighted_sum_cases},
    BenchedOp{"norm_backward", norm_backward_cases},
    BenchedOp{"dropout", dropout_cases},
    BenchedOp{"activate_backward", activate_backward_cases},
    BenchedOp{"attention_backward", attention_backward_cases},
    BenchedOp{"relative_bias_backward", relative_bias_backward_cases},
    BenchedOp{"fill", fill_cases},
    BenchedOp{"copy", copy_cases},
    BenchedOp{"embedding_backward", embedding_backward_cases},
    BenchedOp{"squared_norm", squared_norm_cases},
    BenchedOp{"loss_factors", loss_factors_cases},
    BenchedOp{"decide_update", decide_update_cases},
    BenchedOp{"adamw", adamw_cases},
    BenchedOp{"sgd", sgd_cases},
    BenchedOp{"lamb_moments", lamb_moments_cases},
    BenchedOp{"sum_segments", sum_segments_cases},
    BenchedOp{"lamb_ratios", lamb_ratios_cases},
    BenchedOp{"lamb_update", lamb_update_cases},
};

}  // namespace

std::span<const BenchedOp> benched_ops() { return kBenchedOps; }

namespace {

template <class T>
Tensor uploaded(OpRig& rig, const std::vector<T>& host) {
  const Tensor tensor = rig.make({static_cast<int64_t>(host.size())}, DTypeOf<T>::value);
  rig.exec().device.upload(host.data(), tensor.data, bytes_of(tensor));
  return tensor;
}

}  // namespace

CaseOperands::CaseOperands(OpRig& rig, const Config& from)
    : config(from),
      model(resolve_model(from)),
      batch(resolve_batch(from)),
      dtype(resolve_dtype(from)),
      sums(accumulation_of(dtype)),
      tokens(batch.micro_batch * std::max(batch.sequence, batch.second_sequence)),
      loss_rows(std::min(tokens, head_chunk(from))),
      inner(is_gated(from.model.activation) ? 2 * model.ffn : model.ffn),
      rig_(rig) {}

Tensor CaseOperands::filled(Shape shape, DType of, double content) const {
  const Tensor tensor = rig_.make(shape, of);
  ops::fill(rig_.exec(), {.out = tensor, .value = content});
  return tensor;
}

Tensor CaseOperands::state(Shape shape, StatePrecision precision) const {
  return filled(shape, precision == StatePrecision::Bf16 ? DType::bf16 : sums, 0.5);
}

Tensor CaseOperands::numbers(const std::vector<double>& given) const {
  return uploaded(rig_, given);
}

Tensor CaseOperands::table(const std::vector<int64_t>& given, int64_t columns) const {
  return reshape(uploaded(rig_, given), {std::ssize(given) / columns, columns});
}

Tensor CaseOperands::ids(int64_t count, int64_t below) const {
  std::vector<int32_t> drawn(static_cast<size_t>(count));
  for (size_t i = 0; i < drawn.size(); ++i)
    drawn[i] = static_cast<int32_t>(philox(2, 0, i)[0] % static_cast<uint64_t>(below));
  return uploaded(rig_, drawn);
}

Tensor CaseOperands::positions() const {
  std::vector<int32_t> places(static_cast<size_t>(tokens));
  for (size_t i = 0; i < places.size(); ++i)
    places[i] = static_cast<int32_t>(i % static_cast<size_t>(batch.sequence));
  return uploaded(rig_, places);
}

ops::Dropout CaseOperands::dropout(double probability) const {
  if (probability == 0) return {};
  std::vector<int64_t> rows(static_cast<size_t>(tokens));
  std::iota(rows.begin(), rows.end(), int64_t{0});
  return {.probability = probability, .key = 3, .rows = uploaded(rig_, rows)};
}

namespace {

std::string activation_shape(const CaseOperands& o) { return format("{} x {}", o.tokens, o.inner); }

}  // namespace

// The model fuses ungated activations into GEMMs, except when it recomputes them.
std::vector<OpCase> activate_cases(const CaseOperands& o) {
  const ops::Activate a{.activation = o.config.model.activation,
                        .x = o.value({o.tokens, o.inner}),
                        .y = o.value({o.tokens, o.model.ffn})};
  return {{activation_shape(o), [=](Exec& ex) { ops::activate(ex, a); }}};
}

std::vector<OpCase> activate_backward_cases(const CaseOperands& o) {
  const ops::ActivateBackward a{.activation = o.config.model.activation,
                                .dy = o.value({o.tokens, o.model.ffn}),
                                .x = o.value({o.tokens, o.inner}),
                                .dx = o.value({o.tokens, o.inner})};
  return {{activation_shape(o), [=](Exec& ex) { ops::activate_backward(ex, a); }}};
}

// The model adds in place; the benchmark writes to another tensor, so that values do not grow.
std::vector<OpCase> residual_add_cases(const CaseOperands& o) {
  const Shape shape{o.tokens, o.model.width};
  const ops::ResidualAdd plain{
      .residual = o.value(shape), .delta = o.value(shape), .out = o.value(shape)};
  const std::string name = format("{} x {}", o.tokens, o.model.width);
  return with_and_without_dropout(o, name, plain, o.config.model.hidden_dropout, ops::residual_add);
}

std::vector<OpCase> dropout_cases(const CaseOperands& o) {
  const double probability = o.config.model.hidden_dropout;
  if (probability == 0) return {};
  const Shape shape{o.tokens, o.model.width};
  const ops::DropoutApply d{
      .x = o.value(shape), .dropout = o.dropout(probability), .y = o.value(shape)};
  return {{format("{} x {} dropout {}", o.tokens, o.model.width, probability),
           [=](Exec& ex) { ops::dropout(ex, d); }}};
}

namespace {

std::string embedding_shape(const CaseOperands& o, std::string_view table, int64_t rows) {
  return format("{} {} of {} x {}", table, o.tokens, rows, o.model.width);
}

bool learns_positions(const CaseOperands& o) {
  return o.config.model.position == PositionKind::Learned;
}

}  // namespace

std::vector<OpCase> embedding_cases(const CaseOperands& o) {
  const ModelShape& m = o.model;
  const Tensor out = o.value({o.tokens, m.width});
  const ops::Embedding tokens{
      .table = o.value({m.padded_vocab, m.width}), .ids = o.ids(o.tokens, m.vocab), .out = out};
  std::vector<OpCase> cases{{embedding_shape(o, "tokens", m.padded_vocab),
                             [=](Exec& ex) { ops::embedding(ex, tokens); }}};
  if (!learns_positions(o)) return cases;
  // The model adds these to the token embeddings; a table of zeros keeps the sum from growing.
  const ops::Embedding positions{.table = o.filled({m.positions, m.width}, o.dtype, 0),
                                 .ids = o.positions(),
                                 .accumulate = true,
                                 .out = out};
  cases.push_back({embedding_shape(o, "positions", m.positions),
                   [=](Exec& ex) { ops::embedding(ex, positions); }});
  return cases;
}

std::vector<OpCase> embedding_backward_cases(const CaseOperands& o) {
  const ModelShape& m = o.model;
  const Tensor dout = o.value({o.tokens, m.width});
  const ops::EmbeddingBackward tokens{.dout = dout,
                                      .ids = o.ids(o.tokens, m.vocab),
                                      .dtable = o.gradient({m.padded_vocab, m.width})};
  std::vector<OpCase> cases{{embedding_shape(o, "tokens", m.padded_vocab),
                             [=](Exec& ex) { ops::embedding_backward(ex, tokens); }}};
  if (!learns_positions(o)) return cases;
  const ops::EmbeddingBackward positions{
      .dout = dout, .ids = o.positions(), .dtable = o.gradient({m.positions, m.width})};
  cases.push_back({embedding_shape(o, "positions", m.positions),
                   [=](Exec& ex) { ops::embedding_backward(ex, positions); }});
  return cases;
}

namespace {

bool scores_pairs(const CaseOperands& o) { return o.config.model.family == ModelFamily::Biencoder; }

// Rows and classes of the loss. A bi-encoder's classes are the contexts of a micro-batch.
Shape loss_extent(const CaseOperands& o) {
  const int64_t pairs = o.batch.micro_batch;
  return scores_pairs(o) ? Shape{pairs, pairs} : Shape{o.loss_rows, o.model.padded_vocab};
}

std::string loss_shape(const CaseOperands& o) {
  const Shape extent = loss_extent(o);
  return format("{} x {}", extent[0], extent[1]);
}

Tensor logits_of(const CaseOperands& o) {
  return scores_pairs(o) ? o.sum(loss_extent(o)) : o.value(loss_extent(o));
}

Tensor targets_of(const CaseOperands& o) {
  const Shape extent = loss_extent(o);
  return o.ids(extent[0], scores_pairs(o) ? extent[1] : o.model.vocab);
}

Tensor weights_of(const CaseOperands& o) { return o.filled({loss_extent(o)[0]}, DType::f32, 1); }

}  // namespace

// The input of a T5's head, or the scores of a bi-encoder.
std::vector<OpCase> scale_cases(const CaseOperands& o) {
  const auto with = [](Tensor x, Tensor y) -> std::vector<OpCase> {
    const ops::Scaling s{.x = x, .factor = 0.5, .y = y};
    return {{format("{} x {}", x.shape[0], x.shape[1]), [=](Exec& ex) { ops::scale(ex, s); }}};
  };
  if (scores_pairs(o) && o.config.model.scale_scores) return with(logits_of(o), logits_of(o));
  if (!o.config.model.scale_head_input) return {};
  const Shape shape{o.tokens, o.model.width};
  return with(o.value(shape), o.value(shape));
}

std::vector<OpCase> top_k_hits_cases(const CaseOperands& o) {
  std::vector<OpCase> cases;
  if (!scores_pairs(o)) return cases;
  for (const int64_t k : top_k_of(o.config.log)) {
    const ops::TopKHits t{.logits = logits_of(o),
                          .targets = targets_of(o),
                          .k = k,
                          .value = 100,
                          .hits = o.sum({loss_extent(o)[0]})};
    cases.push_back(
        {format("{} k {}", loss_shape(o), k), [=](Exec& ex) { ops::top_k_hits(ex, t); }});
  }
  return cases;
}

std::vector<OpCase> softmax_stats_cases(const CaseOperands& o) {
  if (scores_pairs(o)) return {};
  const ops::SoftmaxStats s{.logits = logits_of(o),
                            .targets = targets_of(o),
                            .stats = o.sum({o.loss_rows, ops::kSoftmaxStats})};
  return {{loss_shape(o), [=](Exec& ex) { ops::softmax_stats(ex, s); }}};
}

// In place, as in the model: the gradient of a chunk replaces its logits. A second case has given
// statistics, as with a sharded vocabulary. They are those of rows with small probabilities, so
// that the gradient stays small when it becomes the next logits.
std::vector<OpCase> cross_entropy_cases(const CaseOperands& o) {
  const Tensor logits = logits_of(o);
  const ops::CrossEntropy c{.logits = logits,
                            .stats = {},
                            .targets = targets_of(o),
                            .weight = weights_of(o),
                            .classes = loss_extent(o)[1],
                            .grad_scale = o.filled({1}, DType::f64, 1),
                            .loss = o.sum({loss_extent(o)[0]}),
                            .dlogits = logits};
  std::vector<OpCase> cases{{loss_shape(o), [=](Exec& ex) { ops::cross_entropy(ex, c); }}};
  if (scores_pairs(o)) return cases;
  ops::CrossEntropy cut = c;
  cut.stats = o.filled({o.loss_rows, ops::kSoftmaxStats}, o.sums, 10);
  cases.push_back(
      {loss_shape(o) + ", statistics given", [=](Exec& ex) { ops::cross_entropy(ex, cut); }});
  return cases;
}

std::vector<OpCase> weighted_sum_cases(const CaseOperands& o) {
  const ops::WeightedSum s{.x = o.sum({loss_extent(o)[0]}),
                           .weight = weights_of(o),
                           .out = o.filled({2}, DType::f64, 0)};
  return {{format("{}", loss_extent(o)[0]), [=](Exec& ex) { ops::weighted_sum(ex, s); }}};
}

}  // namespace bev
