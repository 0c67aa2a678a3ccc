#include <array>

#include "base/format.h"
#include "bench/op_cases.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/update.h"

namespace bev {

namespace {

// Far beyond any cache; a stretch of parameters, not all of them.
constexpr int64_t kStretch = int64_t{1} << 24;

// Lengths of updates: a matrix of the MLP, as the smallest models have, and a stretch of many.
std::array<int64_t, 2> update_lengths(const CaseOperands& o) {
  return {o.model.width * o.inner, kStretch};
}

// A small step of a run on its way: the first one would not read the momentum.
Tensor decision_of(const CaseOperands& o) {
  std::vector<double> decision(kUpdateDecisions, 0);
  decision[kFactor] = 1;
  decision[kApplied] = 1;
  decision[kRate] = 1e-4;
  decision[kWeightDecay] = 0.1;
  decision[kStepNumber] = 100;
  return o.numbers(decision);
}

Tensor master_of(const CaseOperands& o, int64_t count) {
  return o.dtype == o.sums ? Tensor{} : o.sum({count});
}

}  // namespace

// Gradients that are added to: vectors at the start of a step, and the tables that no GEMM
// overwrites.
std::vector<OpCase> fill_cases(const CaseOperands& o) {
  const ModelShape& m = o.model;
  std::vector<OpCase> cases;
  const auto add = [&](const std::string& shape, const Tensor& out) {
    cases.push_back({shape, [=](Exec& ex) { ops::fill(ex, {.out = out, .value = 0}); }});
  };
  add(format("vector {}", m.width), o.sum({m.width}));
  if (o.config.model.position == PositionKind::Learned)
    add(format("positions {} x {}", m.positions, m.width), o.gradient({m.positions, m.width}));
  if (!o.config.model.tied)
    add(format("tokens {} x {}", m.padded_vocab, m.width), o.gradient({m.padded_vocab, m.width}));
  return cases;
}

std::vector<OpCase> copy_cases(const CaseOperands& o) {
  const Shape shape{o.tokens, o.model.width};
  const Tensor in = o.sum(shape), out = o.value(shape);
  return {
      {format("{} x {}, {} to {}", o.tokens, o.model.width, name_of(in.dtype), name_of(out.dtype)),
       [=](Exec& ex) { ops::copy(ex, {.in = in, .out = out}); }}};
}

std::vector<OpCase> squared_norm_cases(const CaseOperands& o) {
  const ops::SquaredNorm s{.x = o.gradient({kStretch}), .out = o.filled({1}, DType::f64, 0)};
  return {{format("{}", kStretch), [=](Exec& ex) { ops::squared_norm(ex, s); }}};
}

std::vector<OpCase> loss_factors_cases(const CaseOperands& o) {
  const ops::LossFactors f{.counts = o.filled({1}, DType::f64, 1),
                           .loss_scale = o.filled({1}, DType::f64, 1),
                           .out = o.filled({1}, DType::f64, 1)};
  return {{"one loss", [=](Exec& ex) { ops::loss_factors(ex, f); }}};
}

std::vector<OpCase> decide_update_cases(const CaseOperands& o) {
  const ops::DecideUpdate u{.norm_squared = o.filled({1}, DType::f64, 1),
                            .loss = o.filled({2}, DType::f64, 1),
                            .rule = {},
                            .state = o.filled({kUpdateStates}, DType::f64, 1),
                            .decision = decision_of(o)};
  return {{"a few numbers", [=](Exec& ex) { ops::decide_update(ex, u); }}};
}

std::vector<OpCase> adamw_cases(const CaseOperands& o) {
  if (o.config.optim.kind != OptimizerKind::AdamW) return {};
  std::vector<OpCase> cases;
  for (const int64_t count : update_lengths(o)) {
    const ops::AdamW a{.param = o.value({count}),
                       .master = master_of(o, count),
                       .m = o.state({count}, o.config.optim.first_moment),
                       .v = o.state({count}, o.config.optim.second_moment),
                       .grad = o.gradient({count}),
                       .decision = decision_of(o)};
    cases.push_back({format("{}", count), [=](Exec& ex) { ops::adamw(ex, a); }});
  }
  return cases;
}

std::vector<OpCase> sgd_cases(const CaseOperands& o) {
  if (o.config.optim.kind != OptimizerKind::Sgd) return {};
  std::vector<OpCase> cases;
  for (const int64_t count : update_lengths(o)) {
    const ops::Sgd s{.param = o.value({count}),
                     .master = master_of(o, count),
                     .buffer = o.sum({count}),
                     .grad = o.gradient({count}),
                     .decision = decision_of(o)};
    cases.push_back({format("{}", count), [=](Exec& ex) { ops::sgd(ex, s); }});
  }
  return cases;
}

}  // namespace bev
