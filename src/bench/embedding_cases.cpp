#include "base/format.h"
#include "bench/op_cases.h"
#include "ops/embedding.h"

namespace bev {

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
  std::vector<OpCase> cases{
      {embedding_shape(o, "tokens", m.padded_vocab), [=](Exec& ex) { ops::embedding(ex, tokens); }}};
  if (!learns_positions(o)) return cases;
  // The model adds these to the tokens'; a table of zeros keeps the sum from growing.
  const ops::Embedding positions{.table = o.filled({m.positions, m.width}, o.dtype, 0),
                                 .ids = o.positions(),
                                 .accumulate = true,
                                 .out = out};
  cases.push_back(
      {embedding_shape(o, "positions", m.positions), [=](Exec& ex) { ops::embedding(ex, positions); }});
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

}  // namespace bev
