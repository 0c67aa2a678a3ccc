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

// One kind of attention of the model.
struct AttentionKind {
  std::string_view name;  // empty: the model has one kind
  int64_t queries, keys;  // of a sequence
  bool causal, relative;
};

std::vector<AttentionKind> attention_kinds(const CaseOperands& o) {
  const bool relative = o.config.model.position == PositionKind::Relative;
  const int64_t text = o.batch.sequence, answer = o.batch.second_sequence;
  const ModelFamily family = o.config.model.family;
  if (family != ModelFamily::T5) return {{"", text, text, family == ModelFamily::Gpt, false}};
  return {{"encoder", text, text, false, relative},
          {"decoder", answer, answer, true, relative},
          {"cross", answer, text, false, false}};
}

// As the model has them: parts of fused rows.
Heads fused_heads(const CaseOperands& o, const AttentionKind& kind) {
  const ModelShape& m = o.model;
  const int64_t queries = o.batch.micro_batch * kind.queries;
  const int64_t keys = o.batch.micro_batch * kind.keys;
  const int64_t q = m.heads * m.head_dim, kv = m.kv_heads * m.head_dim;
  const bool is_cross = queries != keys;
  const Tensor rows = o.value({queries, is_cross ? q : q + 2 * kv});
  const Tensor kv_rows = is_cross ? o.value({keys, 2 * kv}) : slice(rows, 1, q, 2 * kv);
  return {.q = split_last(slice(rows, 1, 0, q), m.head_dim),
          .k = split_last(slice(kv_rows, 1, 0, kv), m.head_dim),
          .v = split_last(slice(kv_rows, 1, kv, kv), m.head_dim)};
}

// Norms of queries and keys write them without gaps.
Heads attended_heads(const CaseOperands& o, const AttentionKind& kind) {
  Heads heads = fused_heads(o, kind);
  if (o.config.model.qk_norm) {
    heads.q = o.value(heads.q.shape);
    heads.k = o.value(heads.k.shape);
  }
  return heads;
}

std::string attention_shape(const CaseOperands& o, const AttentionKind& kind) {
  const ModelShape& m = o.model;
  std::string shape(kind.name);
  if (!shape.empty()) shape += " ";
  shape += format("{} x {}", o.batch.micro_batch, kind.queries);
  if (kind.keys != kind.queries) shape += format(" x {}", kind.keys);
  shape += format(", {} heads x {}", m.heads, m.head_dim);
  return m.kv_heads < m.heads ? shape + format(", {} kv", m.kv_heads) : shape;
}

ops::AttentionInput attention_input(const CaseOperands& o, const AttentionKind& kind,
                                    const Heads& h) {
  const double scaled = 1 / std::sqrt(static_cast<double>(o.model.head_dim));
  return {.q = h.q,
          .k = h.k,
          .v = h.v,
          .sequences = o.batch.micro_batch,
          .scale = o.config.model.scale_attention ? scaled : 1,
          .mask = {.causal = kind.causal, .window = kind.causal ? o.config.model.window : 0}};
}

// Near the log of a sum over many keys.
Tensor log_sums(const CaseOperands& o, const AttentionKind& kind) {
  return o.filled({o.batch.micro_batch, o.model.heads, kind.queries}, o.sums, 5);
}

Shape bias_shape(const CaseOperands& o, const AttentionKind& kind) {
  return {o.model.heads, kind.queries, kind.keys};
}

// Without dropout and, if the model has it, with it.
template <class Op>
void add_cases(std::vector<OpCase>& cases, const CaseOperands& o, const std::string& shape, Op op,
               void (*issue)(Exec&, const Op&)) {
  cases.push_back({shape, [=](Exec& ex) { issue(ex, op); }});
  const double probability = o.config.model.attention_dropout;
  if (probability == 0) return;
  const ops::Dropout d = o.dropout(probability);
  op.dropout = {
      .probability = d.probability, .key = d.key, .rows = slice(d.rows, 0, 0, op.q.shape[0])};
  cases.push_back({format("{} dropout {}", shape, probability), [=](Exec& ex) { issue(ex, op); }});
}

}  // namespace

// With relative positions also without their bias, for comparison.
std::vector<OpCase> attention_cases(const CaseOperands& o) {
  std::vector<OpCase> cases;
  for (const AttentionKind& kind : attention_kinds(o)) {
    const Heads h = attended_heads(o, kind);
    ops::Attention a{attention_input(o, kind, h), o.value(h.q.shape), log_sums(o, kind)};
    const std::string shape = attention_shape(o, kind);
    add_cases(cases, o, shape, a, ops::attention);
    if (!kind.relative) continue;
    a.bias = o.value(bias_shape(o, kind));
    add_cases(cases, o, shape + ", bias", a, ops::attention);
  }
  return cases;
}

std::vector<OpCase> attention_backward_cases(const CaseOperands& o) {
  std::vector<OpCase> cases;
  for (const AttentionKind& kind : attention_kinds(o)) {
    const Heads h = attended_heads(o, kind), d = fused_heads(o, kind);
    ops::AttentionBackward a{attention_input(o, kind, h),
                             o.value(h.q.shape),
                             o.value(h.q.shape),
                             log_sums(o, kind),
                             d.q,
                             d.k,
                             d.v};
    const std::string shape = attention_shape(o, kind);
    add_cases(cases, o, shape, a, ops::attention_backward);
    if (!kind.relative) continue;
    a.bias = o.value(bias_shape(o, kind));
    add_cases(cases, o, shape + ", bias", a, ops::attention_backward);
    a.dbias = o.sum(bias_shape(o, kind));
    add_cases(cases, o, shape + ", bias and its gradient", a, ops::attention_backward);
  }
  return cases;
}

namespace {

// Cases for the self attention of the encoder and the decoder: make(kind, positions, table, bias).
template <class Make>
std::vector<OpCase> bias_cases(const CaseOperands& o, Make make) {
  std::vector<OpCase> cases;
  for (const AttentionKind& kind : attention_kinds(o)) {
    if (!kind.relative) continue;
    const ops::RelativePositions positions{.max_distance = o.config.model.relative_distance,
                                           .bidirectional = !kind.causal};
    cases.push_back(
        {format("{} {} heads x {} x {}", kind.name, o.model.heads, kind.queries, kind.keys),
         make(positions, Shape{o.config.model.relative_buckets, o.model.heads},
              bias_shape(o, kind))});
  }
  return cases;
}

}  // namespace

std::vector<OpCase> relative_bias_cases(const CaseOperands& o) {
  return bias_cases(o, [&](const auto& positions, const Shape& table, const Shape& bias) {
    const ops::RelativeBias r{
        .table = o.value(table), .positions = positions, .bias = o.value(bias)};
    return [=](Exec& ex) { ops::relative_bias(ex, r); };
  });
}

std::vector<OpCase> relative_bias_backward_cases(const CaseOperands& o) {
  return bias_cases(o, [&](const auto& positions, const Shape& table, const Shape& bias) {
    const ops::RelativeBiasBackward r{
        .dbias = o.sum(bias), .positions = positions, .dtable = o.sum(table)};
    return [=](Exec& ex) { ops::relative_bias_backward(ex, r); };
  });
}

std::vector<OpCase> rope_cases(const CaseOperands& o) {
  const ModelShape& m = o.model;
  if (m.rotary_dim == 0) return {};
  const Heads h = attended_heads(o, attention_kinds(o).front());
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
