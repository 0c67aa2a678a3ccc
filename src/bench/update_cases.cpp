#include <algorithm>
#include <array>

#include "base/format.h"
#include "bench/op_cases.h"
#include "ops/elementwise.h"
#include "ops/lamb_update.h"
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

namespace {

LambRule lamb_rule_of(const CaseOperands& o) {
  return {.has_noise = o.config.optim.kind == OptimizerKind::MyLamb2};
}

// One parameter.
Tensor lamb_chunks(const CaseOperands& o, int64_t count) {
  std::vector<int64_t> table;
  for (int64_t begin = 0; begin < count; begin += ops::kLambChunk)
    table.insert(table.end(), {begin, std::min(ops::kLambChunk, count - begin), 0, 1});
  return o.table(table, ops::kChunkFields);
}

Tensor lamb_squares(const CaseOperands& o, int64_t rows) {
  return o.filled({rows, lamb_rule_of(o).has_noise ? 3 : 2}, DType::f64, 1);
}

Tensor noise_of(const CaseOperands& o, int64_t count) {
  return lamb_rule_of(o).has_noise ? o.sum({count}) : Tensor{};
}

// As many parameters as some hundred layers have.
constexpr int64_t kParams = 1000;

}  // namespace

std::vector<OpCase> lamb_moments_cases(const CaseOperands& o) {
  if (!is_lamb(o.config.optim.kind)) return {};
  std::vector<OpCase> cases;
  for (const int64_t count : update_lengths(o)) {
    const Tensor chunks = lamb_chunks(o, count);
    const ops::LambMoments a{.weights = o.sum({count}),
                             .m = o.sum({count}),
                             .v = o.sum({count}),
                             .q = noise_of(o, count),
                             .grad = o.gradient({count}),
                             .decision = decision_of(o),
                             .chunks = chunks,
                             .rule = lamb_rule_of(o),
                             .squares = lamb_squares(o, chunks.rows())};
    cases.push_back({format("{}", count), [=](Exec& ex) { ops::lamb_moments(ex, a); }});
  }
  return cases;
}

std::vector<OpCase> sum_segments_cases(const CaseOperands& o) {
  if (!is_lamb(o.config.optim.kind)) return {};
  std::vector<int64_t> segments;
  for (int64_t i = 0; i < kParams; ++i) segments.insert(segments.end(), {2 * i, 2 * i + 2});
  const ops::SumSegments s{.x = lamb_squares(o, 2 * kParams),
                           .segments = o.table(segments, 2),
                           .out = lamb_squares(o, kParams)};
  return {{format("{} parameters", kParams), [=](Exec& ex) { ops::sum_segments(ex, s); }}};
}

std::vector<OpCase> lamb_ratios_cases(const CaseOperands& o) {
  if (!is_lamb(o.config.optim.kind)) return {};
  const ops::LambRatios r{.squares = lamb_squares(o, kParams),
                          .params = o.filled({kParams, kLambParams}, DType::f64, 1),
                          .decision = decision_of(o),
                          .out = o.filled({kParams, 2}, DType::f64, 1)};
  return {{format("{} parameters", kParams), [=](Exec& ex) { ops::lamb_ratios(ex, r); }}};
}

std::vector<OpCase> lamb_update_cases(const CaseOperands& o) {
  if (!is_lamb(o.config.optim.kind)) return {};
  std::vector<OpCase> cases;
  for (const int64_t count : update_lengths(o)) {
    const bool has_noise = lamb_rule_of(o).has_noise;
    const ops::LambUpdate a{.param = o.value({count}),
                            .master = master_of(o, count),
                            .m = o.sum({count}),
                            .v = o.sum({count}),
                            .q = noise_of(o, count),
                            .grad = has_noise ? o.gradient({count}) : Tensor{},
                            .decision = decision_of(o),
                            .chunks = lamb_chunks(o, count),
                            .ratios = o.filled({1, 2}, DType::f64, 1),
                            .rule = lamb_rule_of(o)};
    cases.push_back({format("{}", count), [=](Exec& ex) { ops::lamb_update(ex, a); }});
  }
  return cases;
}

}  // namespace bev
