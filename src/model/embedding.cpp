#include "model/embedding.h"

#include "ops/elementwise.h"
#include "ops/embedding.h"

namespace bev {

namespace {

int64_t first_row(const Param& table) { return table.pieces.front().logical.row; }

void scatter(Exec& ex, Param& table, ConstTensor ids, ConstTensor dx) {
  if (!table.accumulate()) ops::fill(ex, {.out = table.grad, .value = 0});
  ops::embedding_backward(
      ex, {.dout = dx, .ids = ids, .row_begin = first_row(table), .dtable = table.grad});
}

}  // namespace

ParamSpec token_table(const ModelSpec& b) {
  ParamSpec spec{.name = kTokenTable,
                 .shape = {b.shape.padded_vocab, b.shape.width},
                 .role = Role::TokenTable,
                 .place = {.cut = Cut{.dim = 0, .axis = Axis::Tensor}},
                 .init = b.init()};
  const auto last = static_cast<int>(b.config.parallel.pipeline) - 1;
  if (b.model().tied && last > 0) spec.place.stages = {0, last};
  return spec;
}

Embedding::Embedding(ParamStore& params, const ModelSpec& b)
    : dropout_(b.model().hidden_dropout),
      dropout_key_(dropout_key(b.seed(), 0, DropoutSite::Embedding)),
      tokens_(params.declare_alone(token_table(b))),
      positions_(b.model().position == PositionKind::Learned
                     ? &params.declare_alone({.name = "embedding.positions.weight",
                                              .shape = {b.shape.positions, b.shape.width},
                                              .role = Role::PositionTable,
                                              .place = {.tensor = b.replica_between_regions()},
                                              .init = b.init()})
                     : nullptr) {}

std::vector<int> Embedding::buckets() const {
  if (positions_ == nullptr) return {tokens_.bucket};
  return {tokens_.bucket, positions_->bucket};
}

ops::Dropout Embedding::dropout(const ModelEnv& env, const MicroBatch& micro) const {
  return {.probability = env.training ? dropout_ : 0.0,
          .key = dropout_key_,
          .rows = env.tensor.local_rows(micro.rows)};
}

void Embedding::forward(Exec& ex, ModelEnv& env, const MicroBatch& micro, Tensor x) const {
  ArenaScope scope(ex.scratch);
  const Tensor partial = env.tensor.partial_buffer(ex, x);
  env.gather(ex, tokens_.bucket);
  ops::embedding(ex, {.table = tokens_.value,
                      .ids = micro.tokens,
                      .row_begin = first_row(tokens_),
                      .out = partial});
  env.tensor.leave(ex, partial, x);
  if (positions_ != nullptr) {
    env.gather(ex, positions_->bucket);
    ops::embedding(ex, {.table = positions_->value,
                        .ids = env.tensor.local_rows(micro.positions),
                        .accumulate = true,
                        .out = x});
  }
  const ops::Dropout drop = dropout(env, micro);
  if (drop.probability > 0) ops::dropout(ex, {.x = x, .dropout = drop, .y = x});
}

void Embedding::backward(Exec& ex, ModelEnv& env, const MicroBatch& micro, Tensor dx) {
  const ops::Dropout drop = dropout(env, micro);
  if (drop.probability > 0) ops::dropout(ex, {.x = dx, .dropout = drop, .y = dx});
  if (positions_ != nullptr) {
    env.begin_bucket_grads(ex, positions_->bucket);
    scatter(ex, *positions_, env.tensor.local_rows(micro.positions), dx);
    env.end_bucket_grads(ex, positions_->bucket);
  }
  ArenaScope scope(ex.scratch);
  env.begin_bucket_grads(ex, tokens_.bucket);
  scatter(ex, tokens_, micro.tokens, env.tensor.leave_backward(ex, dx, ex.scratch));
  env.end_bucket_grads(ex, tokens_.bucket);
}

}  // namespace bev
