// Scalars of LAMB and its variants, one definition for all devices: the factors of a step, and the
// trust ratio by which a parameter's update is scaled. lamb_update.h has the update of the
// elements.
#pragma once

#include <cmath>
#include <cstdint>

#include "ops/update_rule.h"

namespace bev {

struct LambRule {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-6;
  double max_norm = 0;         // a gradient of a larger norm is divided by norm / max_norm; 0: none
  bool averages = true;        // the gradient enters m with the factor 1 - beta1, else 1
  bool corrects_first = true;  // bias correction of m
  bool corrects_second = true;  // and of v
  bool decoupled = true;        // weight decay enters the update, else the gradient
  // The gradient's deviation from m has a second moment and a separate step. m enters the
  // update before it takes the gradient.
  bool has_noise = false;
};

// Factors of one step.
struct LambFactors {
  double gradient;          // of the stored gradient
  double rest1;             // of the gradient in m
  double first;             // of m in the update: 1 / (1 - beta1^n), or 1
  double root_correction2;  // the root of 1 - beta2^n, or 1
  double rate;
  double decay;          // weight decay in the update
  double coupled_decay;  // in the gradient
};

BEV_HOST_DEVICE inline LambFactors lamb_factors(const LambRule& rule, const double* decision,
                                                bool decays) {
  const double n = decision[kStepNumber];
  const double decay = decays ? decision[kWeightDecay] : 0;
  // The gradient's norm after the first clip.
  const double norm = decision[kNorm] * decision[kUsedScale] * decision[kFactor];
  const bool clips = rule.max_norm > 0 && norm > rule.max_norm;
  return {.gradient = decision[kFactor] / (clips ? norm / rule.max_norm : 1),
          .rest1 = rule.averages ? 1 - rule.beta1 : 1,
          .first = rule.corrects_first ? 1 / (1 - std::pow(rule.beta1, n)) : 1,
          .root_correction2 = rule.corrects_second ? std::sqrt(1 - std::pow(rule.beta2, n)) : 1,
          .rate = decision[kRate],
          .decay = rule.decoupled ? decay : 0,
          .coupled_decay = rule.decoupled ? 0 : decay};
}

// How the norms of a parameter p and of its update u become a ratio.
enum class TrustRatio : uint8_t {
  Norms,         // |p| / |u|; 1 if one of them is 0
  DecayedNorms,  // the same for a parameter with weight decay, 1 for others
  BoundedNorms,  // min(|p|, 10) / |u|; 1 if one of them is 0
  Clamped,       // max(|p|, 1e-5 elements) / |u|
  // LAMBTP. A tensor rank has norms of its shard; "whole" norms are those over all tensor ranks.
  Shard,     // |p| / |u| of the shard
  Whole,     // both whole
  Mixed,     // whole |p| / root of the number of tensor ranks / |u| of the shard
  Previous,  // both whole, |u| that of the previous step
};

// Number of norms of a row: p and u, or p and both updates.
inline constexpr int kMostLambNorms = 3;

// Facts about a parameter that its ratio depends on. Entries of a row, all f64.
enum LambParam : int {
  kLambElements = 0,   // to which the norms belong
  kLambWholeElements,  // of the logical tensor
  kLambBoost,          // factor of the ratio
  kLambDecays,         // 1: it has weight decay
  kLambParams
};

// A ratio to an update of zeros does not matter: 0 keeps it finite.
BEV_HOST_DEVICE inline double ratio_or_zero(double p, double u) { return u > 0 ? p / u : 0; }

BEV_HOST_DEVICE inline double clamped_ratio(double p, double u, double elements) {
  return ratio_or_zero(std::fmax(p, 1e-5 * elements), u);
}

struct LambNorms {
  double p, u;              // of this rank's scope
  double whole_p, whole_u;  // over all tensor ranks; for LAMBTP
  double previous;          // whole_u of the previous step; 0: there was none
};

BEV_HOST_DEVICE inline double trust_ratio(TrustRatio kind, const LambNorms& n, const double* param,
                                          const double* decision) {
  const double elements = param[kLambElements];
  const bool is_first = decision[kStepNumber] == 1;
  switch (kind) {
    case TrustRatio::DecayedNorms:
      if (param[kLambDecays] == 0 || decision[kWeightDecay] == 0) return 1;
      return n.p > 0 && n.u > 0 ? n.p / n.u : 1;
    case TrustRatio::Norms: return n.p > 0 && n.u > 0 ? n.p / n.u : 1;
    case TrustRatio::BoundedNorms: return n.p > 0 && n.u > 0 ? std::fmin(n.p, 10.0) / n.u : 1;
    case TrustRatio::Clamped: return clamped_ratio(n.p, n.u, elements);
    case TrustRatio::Shard: return ratio_or_zero(n.p, n.u);
    case TrustRatio::Whole: return ratio_or_zero(n.whole_p, n.whole_u);
    case TrustRatio::Mixed:
      // The root mean square of the ranks' norms: copies of a tensor are not cut.
      return is_first
                 ? clamped_ratio(n.p, n.u, elements)
                 : ratio_or_zero(n.whole_p * std::sqrt(elements / param[kLambWholeElements]), n.u);
    case TrustRatio::Previous:
      return is_first || !(n.previous > 0) ? clamped_ratio(n.p, n.u, elements)
                                           : n.whole_p / n.previous;
  }
  return 1;
}

// The operands of ops::LambRatios, contiguous.
struct TrustTable {
  const double *squares, *whole, *params, *decision;
  double *previous, *out;
  int norms;  // columns of squares
  int tensor_ranks;
  TrustRatio kind;
};

// Row `row` of the result. REQUIRES: the decision is applied.
BEV_HOST_DEVICE inline void set_trust_ratios(const TrustTable& t, int64_t row) {
  const double* squares = t.squares + row * t.norms;
  const double* param = t.params + row * kLambParams;
  LambNorms n{.p = std::sqrt(squares[0]), .u = 0, .whole_p = 0, .whole_u = 0, .previous = 0};
  if (t.whole != nullptr) {
    // Copies on several ranks count once.
    const double share = param[kLambWholeElements] / (t.tensor_ranks * param[kLambElements]);
    n.whole_p = std::sqrt(share * t.whole[row * t.norms]);
    n.whole_u = std::sqrt(share * t.whole[row * t.norms + 1]);
  }
  if (t.previous != nullptr) {
    n.previous = t.previous[row];
    t.previous[row] = n.whole_u;
  }
  for (int i = 0; i < 2; ++i) {
    const bool exists = i + 1 < t.norms;
    n.u = exists ? std::sqrt(squares[i + 1]) : 0;
    t.out[2 * row + i] = exists ? param[kLambBoost] * trust_ratio(t.kind, n, param, t.decision) : 0;
  }
}

}  // namespace bev
