#include "model/embedding.h"

#include "ops/elementwise.h"
#include "ops/embedding.h"

namespace bev {

namespace {

void scatter(Exec& ex, Param& table, ConstTensor ids, ConstTensor dx) {
  if (!table.accumulate()) ops::fill(ex, {.out = table.grad, .value = 0});
  ops::embedding_backward(ex, {.dout = dx, .ids = ids, .dtable = table.grad});
}

}  // namespace

Embedding::Embedding(ParamStore& params, const Blueprint& b)
    : dropout_(b.model().hidden_dropout),
      dropout_key_(dropout_key(b.seed(), 0, DropoutSite::Embedding)),
      tokens_(params.declare({.name = "embedding.tokens.weight",
                              .shape = {b.shape.padded_vocab, b.shape.width},
                              .cut = Cut{.dim = 0, .axis = Axis::Tensor},
                              .init = init_input(b)})),
      positions_(b.model().position == PositionKind::Learned
                     ? &params.declare({.name = "embedding.positions.weight",
                                        .shape = {b.shape.positions, b.shape.width},
                                        .replicas = {{Axis::Tensor, Replica::Same}},
                                        .init = init_input(b)})
                     : nullptr) {}

ops::Dropout Embedding::dropout(const ModelEnv& env, const MicroBatch& micro) const {
  return {.probability = env.training ? dropout_ : 0.0, .key = dropout_key_, .rows = micro.rows};
}

void Embedding::forward(Exec& ex, ModelEnv& env, const MicroBatch& micro, Tensor x) const {
  ops::embedding(ex, {.table = tokens_.value, .ids = micro.tokens, .out = x});
  if (positions_ != nullptr) {
    ops::embedding(
        ex, {.table = positions_->value, .ids = micro.positions, .accumulate = true, .out = x});
  }
  const ops::Dropout drop = dropout(env, micro);
  if (drop.probability > 0) ops::dropout(ex, {.x = x, .dropout = drop, .y = x});
}

void Embedding::backward(Exec& ex, ModelEnv& env, const MicroBatch& micro, Tensor dx) {
  const ops::Dropout drop = dropout(env, micro);
  if (drop.probability > 0) ops::dropout(ex, {.x = dx, .dropout = drop, .y = dx});
  scatter(ex, tokens_, micro.tokens, dx);
  if (positions_ != nullptr) scatter(ex, *positions_, micro.positions, dx);
}

}  // namespace bev
