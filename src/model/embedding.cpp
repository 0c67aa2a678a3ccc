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
  Placement place{.tensor = spec.tensor};
  if (is_vocab_table(spec.role)) place.cut = Cut{.dim = 0, .axis = Axis::Tensor};
  if (spec.role == Role::RelativeTable) place.cut = Cut{.dim = 1, .axis = Axis::Tensor};
  return params.declare_in_own_bucket({.name = spec.name,
                                       .shape = {spec.rows, spec.width},
                                       .role = spec.role,
                                       .place = place,
                                       .init = spec.init});
}

Embedding::Embedding(ParamStore& params, const EmbeddingSpec& spec)
    : dropout_(spec.dropout),
      tokens_(declare_table(params, spec.tokens)),
      positions_(spec.positions ? &declare_table(params, *spec.positions) : nullptr),
      types_(spec.types ? &declare_table(params, *spec.types) : nullptr) {
  if (!spec.norm) return;
  params.begin_bucket();
  norm_.emplace(params, spec.norm->name, spec.norm->width, spec.norm->norm);
}

std::vector<int> Embedding::buckets() const {
  std::vector<int> buckets{tokens_.bucket};
  for (const Param* table : {positions_, types_})
    if (table != nullptr) buckets.push_back(table->bucket);
  if (norm_) buckets.push_back(norm_->bucket());
  return buckets;
}

void Embedding::forward(Exec& ex, ModelEnv& env, const TextView& text, Tensor x, Saved& s) const {
  ArenaScope scope(ex.scratch);
  const TensorRegion& region = env.borders.tensor;
  const Tensor sum = norm_ ? ex.keep.allocate(x.shape, x.dtype, "embedding.sum") : x;
  const Tensor partial = region.partial_buffer(ex, sum);
  env.gather(ex, tokens_.bucket);
  ops::embedding(ex, {.table = tokens_.value,
                      .ids = text.tokens,
                      .row_begin = first_row(tokens_),
                      .out = partial});
  region.leave(ex, partial, sum);
  const auto add = [&](const Param* table, ConstTensor ids) {
    if (table == nullptr) return;
    env.gather(ex, table->bucket);
    ops::embedding(
        ex, {.table = table->value, .ids = region.local_rows(ids), .accumulate = true, .out = sum});
  };
  add(positions_, text.positions);
  add(types_, text.types);
  if (norm_) {
    s.sum = sum;
    env.gather(ex, norm_->bucket());
    norm_->forward(ex, sum, x, s.norm);
  }
  const ops::Dropout drop = env.dropout(dropout_, text.rows);
  if (drop.probability > 0) ops::dropout(ex, {.x = x, .dropout = drop, .y = x});
}

void Embedding::backward(Exec& ex, ModelEnv& env, const TextView& text, Tensor dx,
                         const Saved& s) const {
  const TensorRegion& region = env.borders.tensor;
  const ops::Dropout drop = env.dropout(dropout_, text.rows);
  if (drop.probability > 0) ops::dropout(ex, {.x = dx, .dropout = drop, .y = dx});
  if (norm_) {
    env.gather(ex, norm_->bucket());
    env.flow.begin_bucket(ex, norm_->bucket());
    norm_->backward(ex, dx, s.sum, s.norm, {}, {dx});
    env.flow.end_bucket(ex, norm_->bucket());
  }
  const auto scatter_local = [&](Param* table, ConstTensor ids) {
    if (table == nullptr) return;
    env.flow.begin_bucket(ex, table->bucket);
    scatter(ex, *table, region.local_rows(ids), dx);
    env.flow.end_bucket(ex, table->bucket);
  };
  scatter_local(types_, text.types);
  scatter_local(positions_, text.positions);
  ArenaScope scope(ex.scratch);
  env.flow.begin_bucket(ex, tokens_.bucket);
  scatter(ex, tokens_, text.tokens, region.leave_backward(ex, dx, ex.scratch));
  env.flow.end_bucket(ex, tokens_.bucket);
}

}  // namespace bev
