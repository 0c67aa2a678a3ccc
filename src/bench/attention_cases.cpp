#include <cmath>

#include "base/format.h"
#include "bench/op_cases.h"
#include "ops/attention.h"
#include "ops/relative_bias.h"
#include "ops/rope.h"

namespace bev {

namespace {

struct Heads {
  Tensor q, k, v;
};

// As the model has them: parts of fused rows.
Heads fused_heads(const CaseOperands& o) {
  const ModelShape& m = o.model;
  const Tensor rows = o.value({o.tokens, (m.heads + 2 * m.kv_heads) * m.head_dim});
  const auto part = [&](int64_t first, int64_t count) {
    return split_last(slice(rows, 1, first * m.head_dim, count * m.head_dim), m.head_dim);
  };
  return {.q = part(0, m.heads),
          .k = part(m.heads, m.kv_heads),
          .v = part(m.heads + m.kv_heads, m.kv_heads)};
}

// Norms of queries and keys write them without gaps.
Heads attended_heads(const CaseOperands& o) {
  Heads heads = fused_heads(o);
  if (o.config.model.qk_norm) {
    heads.q = o.value(heads.q.shape);
    heads.k = o.value(heads.k.shape);
  }
  return heads;
}

std::string attention_shape(const CaseOperands& o) {
  const ModelShape& m = o.model;
  return format("{} x {}, {} heads x {}", o.batch.micro_batch, o.batch.sequence, m.heads,
                m.head_dim) +
         (m.kv_heads < m.heads ? format(", {} kv", m.kv_heads) : "");
}

ops::AttentionInput attention_input(const CaseOperands& o, const Heads& h) {
  return {.q = h.q,
          .k = h.k,
          .v = h.v,
          .sequences = o.batch.micro_batch,
          .scale = 1 / std::sqrt(static_cast<double>(o.model.head_dim)),
          .mask = {.window = o.config.model.window}};
}

// Near the log of a sum over many keys.
Tensor log_sums(const CaseOperands& o) {
  return o.filled({o.batch.micro_batch, o.model.heads, o.batch.sequence}, o.sums, 5);
}

std::string relative_bias_shape(const CaseOperands& o) {
  return format("{} heads x {} x {}", o.model.heads, o.batch.sequence, o.batch.sequence);
}

// Longer sequences have no bias here: it grows with the square of the length.
constexpr int64_t kMostBiased = 1024;

bool times_bias(const CaseOperands& o) { return o.batch.sequence <= kMostBiased; }

Shape bias_shape(const CaseOperands& o) {
  return {o.model.heads, o.batch.sequence, o.batch.sequence};
}

void append(std::vector<OpCase>& cases, const std::vector<OpCase>& more) {
  cases.insert(cases.end(), more.begin(), more.end());
}

// Self attention of an encoder, then with the bias of relative positions (T5).
template <class Op>
std::vector<OpCase> encoder_cases(const CaseOperands& o, Op op, void (*issue)(Exec&, const Op&)) {
  if (!times_bias(o)) return {};
  const double dropout = o.config.model.attention_dropout;
  const std::string shape = attention_shape(o) + ", not causal";
  op.mask.causal = false;
  std::vector<OpCase> cases = with_and_without_dropout(o, shape, op, dropout, issue);
  op.bias = o.value(bias_shape(o));
  append(cases, with_and_without_dropout(o, shape + ", bias", op, dropout, issue));
  return cases;
}

}  // namespace

std::vector<OpCase> attention_cases(const CaseOperands& o) {
  const Heads h = attended_heads(o);
  const ops::Attention a{attention_input(o, h), o.value(h.q.shape), log_sums(o)};
  std::vector<OpCase> cases = with_and_without_dropout(
      o, attention_shape(o), a, o.config.model.attention_dropout, ops::attention);
  append(cases, encoder_cases(o, a, ops::attention));
  return cases;
}

std::vector<OpCase> attention_backward_cases(const CaseOperands& o) {
  const Heads h = attended_heads(o), d = fused_heads(o);
  ops::AttentionBackward a{
      attention_input(o, h), o.value(h.q.shape), o.value(h.q.shape), log_sums(o), d.q, d.k, d.v};
  const double dropout = o.config.model.attention_dropout;
  std::vector<OpCase> cases =
      with_and_without_dropout(o, attention_shape(o), a, dropout, ops::attention_backward);
  append(cases, encoder_cases(o, a, ops::attention_backward));
  if (!times_bias(o)) return cases;
  a.mask.causal = false;
  a.bias = o.value(bias_shape(o));
  a.dbias = o.sum(bias_shape(o));
  append(cases, with_and_without_dropout(o, attention_shape(o) + ", not causal, bias and gradient",
                                         a, dropout, ops::attention_backward));
  return cases;
}

// T5's number of buckets.
std::vector<OpCase> relative_bias_cases(const CaseOperands& o) {
  if (!times_bias(o)) return {};
  const ops::RelativeBias r{.table = o.value({32, o.model.heads}), .bias = o.value(bias_shape(o))};
  return {{relative_bias_shape(o), [=](Exec& ex) { ops::relative_bias(ex, r); }}};
}

std::vector<OpCase> relative_bias_backward_cases(const CaseOperands& o) {
  if (!times_bias(o)) return {};
  const ops::RelativeBiasBackward r{.dbias = o.filled(bias_shape(o), o.sums, 0),
                                    .dtable = o.sum({32, o.model.heads})};
  return {{relative_bias_shape(o), [=](Exec& ex) { ops::relative_bias_backward(ex, r); }}};
}

std::vector<OpCase> rope_cases(const CaseOperands& o) {
  const ModelShape& m = o.model;
  if (m.rotary_dim == 0) return {};
  const Heads h = attended_heads(o);
  // One angle for all: what is turned keeps its length.
  const Shape table{m.positions, m.rotary_dim / 2};
  const ops::Rope queries{.x = h.q,
                          .positions = o.positions(),
                          .cosine = o.filled(table, o.sums, 0.6),
                          .sine = o.filled(table, o.sums, 0.8)};
  ops::Rope keys = queries;
  keys.x = h.k;
  const auto shape = [&](std::string_view name, int64_t heads) {
    return format("{} {} x {} x {}", name, o.tokens, heads, m.head_dim);
  };
  return {{shape("queries", m.heads), [=](Exec& ex) { ops::rope(ex, queries); }},
          {shape("keys", m.kv_heads), [=](Exec& ex) { ops::rope(ex, keys); }}};
}

}  // namespace bev
