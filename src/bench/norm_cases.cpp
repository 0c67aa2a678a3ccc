#include "base/format.h"
#include "bench/op_cases.h"
#include "ops/norm.h"

namespace bev {

namespace {

// What all norms of a model have besides their inputs.
struct NormParams {
  NormParams(const CaseOperands& o, int64_t rows, int64_t width)
      : kind(o.config.model.norm),
        weight(o.value({width})),
        rstd(o.sum({rows})),
        dweight(o.sum({width})) {
    if (kind != NormKind::LayerNorm) return;
    bias = o.value({width});
    mean = o.sum({rows});
    dbias = o.sum({width});
  }
  NormKind kind;
  Tensor weight, bias{}, mean{}, rstd, dweight, dbias{};
};

// An input of a norm in the model.
struct NormInput {
  std::string shape;
  Tensor x;
  int64_t rows, width;
};

// The hidden state; with qk_norm also the query heads, which lie in fused rows.
std::vector<NormInput> norm_inputs(const CaseOperands& o) {
  const ModelShape& m = o.model;
  std::vector<NormInput> inputs{
      {format("{} x {}", o.tokens, m.width), o.value({o.tokens, m.width}), o.tokens, m.width}};
  if (!o.config.model.qk_norm) return inputs;
  const Tensor fused = o.value({o.tokens, (m.heads + 2 * m.kv_heads) * m.head_dim});
  inputs.push_back({format("queries {} x {} x {}", o.tokens, m.heads, m.head_dim),
                    split_last(slice(fused, 1, 0, m.heads * m.head_dim), m.head_dim),
                    o.tokens * m.heads, m.head_dim});
  return inputs;
}

}  // namespace

std::vector<OpCase> norm_cases(const CaseOperands& o) {
  std::vector<OpCase> cases;
  for (const NormInput& in : norm_inputs(o)) {
    const NormParams p(o, in.rows, in.width);
    const ops::Norm norm{.kind = p.kind,
                         .x = in.x,
                         .weight = p.weight,
                         .bias = p.bias,
                         .y = o.value(in.x.shape),
                         .mean = p.mean,
                         .rstd = p.rstd};
    cases.push_back({in.shape, [=](Exec& ex) { ops::norm(ex, norm); }});
  }
  return cases;
}

std::vector<OpCase> residual_norm_cases(const CaseOperands& o) {
  const Shape shape{o.tokens, o.model.width};
  const NormParams p(o, o.tokens, o.model.width);
  const ops::ResidualNorm plain{.residual = o.value(shape),
                                .delta = o.value(shape),
                                .sum = o.value(shape),
                                .kind = p.kind,
                                .weight = p.weight,
                                .bias = p.bias,
                                .y = o.value(shape),
                                .mean = p.mean,
                                .rstd = p.rstd};
  const std::string name = format("{} x {}", o.tokens, o.model.width);
  return with_and_without_dropout(o, name, plain, o.config.model.hidden_dropout,
                                  ops::residual_norm);
}

std::vector<OpCase> norm_backward_cases(const CaseOperands& o) {
  std::vector<OpCase> cases;
  for (const NormInput& in : norm_inputs(o)) {
    const NormParams p(o, in.rows, in.width);
    const ops::NormBackward plain{.kind = p.kind,
                                  .dy = o.value(in.x.shape),
                                  .x = in.x,
                                  .weight = p.weight,
                                  .mean = p.mean,
                                  .rstd = p.rstd,
                                  .dx = o.value(in.x.shape),
                                  .dweight = p.dweight,
                                  .dbias = p.dbias};
    cases.push_back({in.shape, [=](Exec& ex) { ops::norm_backward(ex, plain); }});
    if (in.x.shape.rank() != 2) continue;  // The residual passes by the hidden state's norms only.
    ops::NormBackward joined = plain;
    joined.dresidual = o.value(in.x.shape);
    cases.push_back({in.shape + " + dresidual", [=](Exec& ex) { ops::norm_backward(ex, joined); }});
    if (o.config.model.bias != BiasKind::All) continue;
    joined.dx_sums = o.sum({in.width});
    cases.push_back(
        {in.shape + " + dresidual, sums", [=](Exec& ex) { ops::norm_backward(ex, joined); }});
  }
  return cases;
}

}  // namespace bev
