// LAMB in two passes over flat memory. The first updates the moments and sums the squares of the
// parameters and of their updates; summed over ranks, these become a ratio for each parameter. The
// second computes the updates again and applies them.
#pragma once

#include "device/exec.h"
#include "ops/lamb_factors.h"

namespace bev::ops {

// A run of flat memory is cut into chunks of one parameter each, of kLambChunk elements at most.
// Entries of a row of the chunk table, all i64.
enum LambChunk : int {
  kChunkBegin = 0,  // first element, counted in the run
  kChunkCount,
  kChunkRow,   // of the parameter
  kChunkNorm,  // 1: this rank counts the chunk in norms
  kChunkFields
};
inline constexpr int64_t kLambChunk = 8192;

// Nothing when the decision is not applied. With g = gradient factor * grad [+ coupled decay * w]:
// m = b1 m + rest1 g;  v = b2 v + (1 - b2) g^2
// u = first * m / (sqrt(v) / root correction 2 + eps) + decay * w
// squares[chunk] = the sums of w^2 and u^2 over the chunk, 0 if kChunkNorm is 0.
// With noise: d = g - m, m stays as it is, and v and q = b2 q + (1 - b2) d^2 follow;
// u = first * m / (sqrt(v) / root + eps), s = first * d / (sqrt(q) / root + eps); decay is left to
// the second pass. squares[chunk] = the sums of w^2, u^2 and s^2.
// weights, m, v, q [count], accumulation type; grad of that type or (cuda) short; q with noise
// only; chunks i64 [chunks, kChunkFields]; squares f64 [chunks, 2, with noise 3]
struct LambMoments {
  ConstTensor weights;
  Tensor m, v;
  Tensor q{};
  ConstTensor grad, decision, chunks;
  LambRule rule{};
  bool decays = true;
  Tensor squares;
};
void lamb_moments(Exec& ex, const LambMoments& a);

// out[i] = the sum of rows [segments[i, 0], segments[i, 1]) of x, in order.
// x f64 [rows, columns]; segments i64 [n, 2]; out f64 [n, columns]
struct SumSegments {
  ConstTensor x, segments;
  Tensor out;
};
void sum_segments(Exec& ex, const SumSegments& s);

// The ratios of all parameters (trust_ratio). Nothing when the decision is not applied.
// squares f64 [params, 2 or 3], of this rank's scope; whole: the same summed over tensor_ranks, for
// LAMBTP; params f64 [params, kLambParams]; previous f64 [params], updated, for Previous; out f64
// [params, 2]: of u and, with noise, of s
struct LambRatios {
  ConstTensor squares;
  ConstTensor whole{};
  ConstTensor params, decision;
  Tensor previous{};
  TrustRatio kind = TrustRatio::Norms;
  int tensor_ranks = 1;
  Tensor out;
};
void lamb_ratios(Exec& ex, const LambRatios& r);

inline TrustTable trust_table(const LambRatios& r) {
  const auto numbers = [](const ConstTensor& t) {
    return t.present() ? reinterpret_cast<const double*>(t.data) : nullptr;
  };
  const bool keeps = r.kind == TrustRatio::Previous;
  return {.squares = numbers(r.squares),
          .whole = numbers(r.whole),
          .params = numbers(r.params),
          .decision = numbers(r.decision),
          .previous = keeps ? reinterpret_cast<double*>(r.previous.data) : nullptr,
          .out = reinterpret_cast<double*>(r.out.data),
          .norms = static_cast<int>(r.squares.shape[1]),
          .tensor_ranks = r.tensor_ranks,
          .kind = r.kind};
}

// With u (and s) as in lamb_moments, nothing when the decision is not applied:
// w = w - rate ratio u; with noise w = w - rate (decay w + ratio[0] u + ratio[1] s), and then
// m = b1 m + rest1 g. `param` receives w rounded; without a master, param is w.
// param, master, m, v, q, grad [count]; grad and q with noise only; ratios f64 [params, 2]
struct LambUpdate {
  Tensor param;
  Tensor master{};
  Tensor m;
  ConstTensor v;
  ConstTensor q{}, grad{};
  ConstTensor decision, chunks, ratios;
  LambRule rule{};
  bool decays = true;
};
void lamb_update(Exec& ex, const LambUpdate& a);

}  // namespace bev::ops
