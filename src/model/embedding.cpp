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

Param& declare_table(ParamStore& params, const TableSpec& spec) {
  Placement place{.stages = spec.stages, .tensor = spec.tensor};
  if (is_vocab_table(spec.role)) place.cut = Cut{.dim = 0, .axis = Axis::Tensor};
  return params.declare_alone({.name = spec.name,
                               .shape = {spec.rows, spec.width},
                               .role = spec.role,
                               .place = place,
                               .init = spec.init});
}

Embedding::Embedding(ParamStore& params, const EmbeddingSpec& spec)
    : dropout_(spec.dropout),
      tokens_(declare_table(params, spec.tokens)),
      positions_(spec.positions ? &declare_table(params, *spec.positions) : nullptr) {}

std::vector<int> Embedding::buckets() const {
  if (positions_ == nullptr) return {tokens_.bucket};
  return {tokens_.bucket, positions_->bucket};
}

void Embedding::forward(Exec& ex, ModelEnv& env, const MicroBatch& micro, Tensor x) const {
  ArenaScope scope(ex.scratch);
  const TensorRegion& region = env.borders.tensor;
  const Tensor partial = region.partial_buffer(ex, x);
  env.gather(ex, tokens_.bucket);
  ops::embedding(ex, {.table = tokens_.value,
                      .ids = micro.tokens,
                      .row_begin = first_row(tokens_),
                      .out = partial});
  region.leave(ex, partial, x);
  if (positions_ != nullptr) {
    env.gather(ex, positions_->bucket);
    ops::embedding(ex, {.table = positions_->value,
                        .ids = region.local_rows(micro.positions),
                        .accumulate = true,
                        .out = x});
  }
  const ops::Dropout drop = env.dropout(dropout_, micro.rows);
  if (drop.probability > 0) ops::dropout(ex, {.x = x, .dropout = drop, .y = x});
}

void Embedding::backward(Exec& ex, ModelEnv& env, const MicroBatch& micro, Tensor dx) const {
  const TensorRegion& region = env.borders.tensor;
  const ops::Dropout drop = env.dropout(dropout_, micro.rows);
  if (drop.probability > 0) ops::dropout(ex, {.x = dx, .dropout = drop, .y = dx});
  if (positions_ != nullptr) {
    env.flow.begin_bucket(ex, positions_->bucket);
    scatter(ex, *positions_, region.local_rows(micro.positions), dx);
    env.flow.end_bucket(ex, positions_->bucket);
  }
  ArenaScope scope(ex.scratch);
  env.flow.begin_bucket(ex, tokens_.bucket);
  scatter(ex, tokens_, micro.tokens, region.leave_backward(ex, dx, ex.scratch));
  env.flow.end_bucket(ex, tokens_.bucket);
}

}  // namespace bev
