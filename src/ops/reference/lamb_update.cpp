#include "ops/lamb_update.h"

#include <cmath>

#include "ops/op_table.h"
#include "ops/reference/element.h"

namespace bev::reference {

namespace {

// One chunk of a run.
struct ChunkRow {
  int64_t begin, end, row;
  bool counts;

  ChunkRow(const ConstTensor& chunks, int64_t i)
      : begin(element<int64_t>(chunks, i, int64_t{ops::kChunkBegin})),
        end(begin + element<int64_t>(chunks, i, int64_t{ops::kChunkCount})),
        row(element<int64_t>(chunks, i, int64_t{ops::kChunkRow})),
        counts(element<int64_t>(chunks, i, int64_t{ops::kChunkNorm}) != 0) {}
};

// moment / (1 - beta1^n) / (sqrt(square / (1 - beta2^n)) + eps), with or without the corrections.
double adam_direction(const LambRule& rule, const double* decision, double moment, double square) {
  const double n = decision[kStepNumber];
  const double correction1 = rule.corrects_first ? 1 - std::pow(rule.beta1, n) : 1;
  const double correction2 = rule.corrects_second ? 1 - std::pow(rule.beta2, n) : 1;
  return moment / correction1 / (std::sqrt(square / correction2) + rule.eps);
}

}  // namespace

void lamb_moments(Exec&, const ops::LambMoments& a) {
  require_f64("lamb_moments", a.weights.dtype);
  const auto* decision = reinterpret_cast<const double*>(a.decision.data);
  if (decision[kApplied] == 0) return;
  const LambFactors f = lamb_factors(a.rule, decision, a.decays);
  const LambRule& rule = a.rule;
  for (int64_t c = 0; c < a.chunks.shape[0]; ++c) {
    const ChunkRow chunk(a.chunks, c);
    double squares[kMostLambNorms] = {};
    for (int64_t i = chunk.begin; i < chunk.end; ++i) {
      const double w = at(a.weights, i);
      const double g = f.gradient * at(a.grad, i) + f.coupled_decay * w;
      double& m = at(a.m, i);
      double& v = at(a.v, i);
      v = rule.beta2 * v + (1 - rule.beta2) * g * g;
      double noise = 0;
      if (rule.has_noise) {
        double& q = at(a.q, i);
        const double deviation = g - m;
        q = rule.beta2 * q + (1 - rule.beta2) * deviation * deviation;
        noise = adam_direction(rule, decision, deviation, q);
      } else {
        m = rule.beta1 * m + f.rest1 * g;
      }
      const double u = adam_direction(rule, decision, m, v) + (rule.has_noise ? 0 : f.decay * w);
      squares[0] += w * w;
      squares[1] += u * u;
      squares[2] += noise * noise;
    }
    for (int64_t k = 0; k < a.squares.shape[1]; ++k)
      at(a.squares, c, k) = chunk.counts ? squares[k] : 0;
  }
}

void sum_segments(Exec&, const ops::SumSegments& s) {
  for (int64_t i = 0; i < s.out.shape[0]; ++i) {
    for (int64_t c = 0; c < s.out.shape[1]; ++c) {
      double sum = 0;
      const int64_t end = element<int64_t>(s.segments, i, int64_t{1});
      for (int64_t r = element<int64_t>(s.segments, i, int64_t{0}); r < end; ++r)
        sum += at(s.x, r, c);
      at(s.out, i, c) = sum;
    }
  }
}

void lamb_ratios(Exec&, const ops::LambRatios& r) {
  const TrustTable table = ops::trust_table(r);
  if (table.decision[kApplied] == 0) return;
  for (int64_t i = 0; i < r.squares.shape[0]; ++i) set_trust_ratios(table, i);
}

void lamb_update(Exec&, const ops::LambUpdate& a) {
  require_f64("lamb_update", a.param.dtype);
  const auto* decision = reinterpret_cast<const double*>(a.decision.data);
  if (decision[kApplied] == 0) return;
  const LambFactors f = lamb_factors(a.rule, decision, a.decays);
  const LambRule& rule = a.rule;
  const Tensor& weights = a.master.present() ? a.master : a.param;
  for (int64_t c = 0; c < a.chunks.shape[0]; ++c) {
    const ChunkRow chunk(a.chunks, c);
    for (int64_t i = chunk.begin; i < chunk.end; ++i) {
      double& w = at(weights, i);
      double& m = at(a.m, i);
      double step =
          at(a.ratios, chunk.row, int64_t{0}) *
          (adam_direction(rule, decision, m, at(a.v, i)) + (rule.has_noise ? 0 : f.decay * w));
      if (rule.has_noise) {
        const double g = f.gradient * at(a.grad, i) + f.coupled_decay * w;
        step += f.decay * w + at(a.ratios, chunk.row, int64_t{1}) *
                                  adam_direction(rule, decision, g - m, at(a.q, i));
        m = rule.beta1 * m + f.rest1 * g;
      }
      w -= f.rate * step;
      at(a.param, i) = w;
    }
  }
}

}  // namespace bev::reference
