// Softmax cross entropy. Over a vocabulary that is cut over ranks: statistics of the local columns
// first, then (after they are combined) the loss and its gradient. Over a whole one: one op.
#pragma once

#include "device/exec.h"

namespace bev::ops {

// The columns of `stats`.
enum SoftmaxStat : int { kStatMax = 0, kStatSumExp, kStatTarget, kStatSum, kSoftmaxStats };

// stats[r] = { max over columns, sum of exp(logit - max), logit of the target (0 when its column is
// held elsewhere or the target is negative), sum of logits }.
// logits [rows, columns]; targets i32 [rows]; stats [rows, kSoftmaxStats] of the accumulation type.
struct SoftmaxStats {
  ConstTensor logits, targets;
  int64_t column_begin = 0;  // logical class of column 0
  Tensor stats;
};
void softmax_stats(Exec& ex, const SoftmaxStats& s);

// The statistics of whole rows from those of ranks that hold some columns each.
// parts [ranks * rows, kSoftmaxStats], rank after rank; stats [rows, kSoftmaxStats]
struct MergeSoftmaxStats {
  ConstTensor parts;
  Tensor stats;
};
void merge_softmax_stats(Exec& ex, const MergeSoftmaxStats& m);

// With lse = max + log(sum exp) and smoothing e over `classes`:
//   loss = (1 - e) (lse - target) + e (lse - mean logit) + z_loss lse^2
//   dlogit_c = w g [ p_c (1 + 2 z_loss lse) - (1 - e) [c = target] - e / classes ]
// w = weight[r], g = grad_scale. A negative target gives loss 0 and gradient 0.
struct CrossEntropy {
  ConstTensor logits;
  // Absent: all classes are in these rows, and the op finds the statistics itself.
  ConstTensor stats{};
  ConstTensor targets;
  ConstTensor weight;  // f32 [rows]
  int64_t column_begin = 0;
  int64_t classes = 0;  // of all ranks together
  double smoothing = 0, z_loss = 0;
  ConstTensor grad_scale{};  // f64 [1], optional: 1
  Tensor loss;               // [rows] of the accumulation type, not weighted
  Tensor dlogits{};          // may be absent, may be logits itself
};
void cross_entropy(Exec& ex, const CrossEntropy& c);

// hits[r] = value if the target of row r is among its k largest logits, else 0. Of equal logits,
// that of the smaller column counts as larger.
struct TopKHits {
  ConstTensor logits;   // [rows, columns]
  ConstTensor targets;  // i32 [rows], columns
  int64_t k = 1;
  double value = 1;
  Tensor hits;  // [rows] of the accumulation type
};
void top_k_hits(Exec& ex, const TopKHits& t);

}  // namespace bev::ops
