// Common parts of the loss kernels: how the threads of a block divide a row, the column of its
// target, and the terms of the loss.
#pragma once

#include "ops/cross_entropy.h"
#include "ops/cuda/primitives/mma.cuh"
#include "ops/cuda/primitives/vector_rows.cuh"

namespace bev::cuda {

// The column of a row's target; -1 if another rank holds it or there is none.
__device__ __forceinline__ int64_t target_column(int32_t target, int64_t column_begin,
                                                 int64_t columns) {
  const int64_t column = target - column_begin;
  return target >= 0 && column >= 0 && column < columns ? column : -1;
}

// Splits a row of any alignment into elements up to an aligned address, whole groups, and the rest.
// Targets are i32, so that columns fit into an int.
template <class T>
struct Parts {
  int lead, groups, columns;
  __device__ __forceinline__ Parts(const T* row, int64_t count) : columns(static_cast<int>(count)) {
    const auto past = static_cast<int>(reinterpret_cast<uintptr_t>(row) % kWideBytes);
    lead = min(columns, (kWideBytes - past) % kWideBytes / static_cast<int>(sizeof(T)));
    groups = (columns - lead) / kGroup;
  }
  // Calls body(column) for the elements outside groups; the threads of the block divide them.
  template <class Body>
  __device__ __forceinline__ void each_single(Body body) const {
    const int rest = lead + groups * kGroup;
    for (int c = threadIdx.x; c < lead; c += blockDim.x) body(c);
    for (int c = rest + threadIdx.x; c < columns; c += blockDim.x) body(c);
  }
};

// Two ways to compute exp(logit - max) = from(origin(max), logit), for which the origin is computed
// once. exp(a - b) = of(origin(a) - origin(b)).
struct NaturalExp {
  __device__ __forceinline__ static float origin(float max) { return max; }
  __device__ __forceinline__ static float of(float difference) { return __expf(difference); }
  __device__ __forceinline__ static float from(float start, float logit) {
    return __expf(logit - start);
  }
};

// 2^(logit * log2(e) - origin), one fused multiply-add. The origin is rounded, so that the
// exponential of the maximum itself is only near 1; but it is the same everywhere, and cancels in
// every quotient of exponentials.
struct BinaryExp {
  static constexpr float kLog2E = 1.4426950408889634f;
  __device__ __forceinline__ static float origin(float max) { return __fmul_rn(max, kLog2E); }
  __device__ __forceinline__ static float of(float difference) { return fast_exp2(difference); }
  __device__ __forceinline__ static float from(float start, float logit) {
    return fast_exp2(fmaf(logit, kLog2E, -start));
  }
};

// Partial results over some columns of a row: maximum, sum of exponentials relative to it, sum of
// logits.
template <class Exp>
struct RowSums {
  float max = -INFINITY, sum_exp = 0, sum = 0;

  // 0 if all logits are -inf: avoids the difference of two infinities.
  __device__ __forceinline__ float origin() const {
    return max == -INFINITY ? 0.0f : Exp::origin(max);
  }
  __device__ __forceinline__ void raise(float to) {
    if (!(to > max)) return;  // also for a NaN, which the exponentials propagate
    sum_exp *= Exp::of(Exp::origin(max) - Exp::origin(to));
    max = to;
  }
  __device__ __forceinline__ void add(float logit) {
    raise(logit);
    sum_exp += Exp::from(origin(), logit);
    sum += logit;
  }
  template <class T>
  __device__ __forceinline__ void add(const Group<T>& group) {
    float largest = group[0];
#pragma unroll
    for (int j = 1; j < kGroup; ++j) largest = fmaxf(largest, group[j]);
    raise(largest);
    const float start = origin();
    float exps = Exp::from(start, group[0]), logits = group[0];
#pragma unroll
    for (int j = 1; j < kGroup; ++j) {
      exps += Exp::from(start, group[j]);
      logits += group[j];
    }
    sum_exp += exps;
    sum += logits;
  }
  __device__ __forceinline__ void add(const RowSums& other) {
    raise(other.max);
    sum_exp += other.sum_exp * Exp::of(Exp::origin(other.max) - origin());
    sum += other.sum;
  }
};

// Whether every row of a has the same offset from a multiple of kWideBytes as that row of b.
inline bool are_alike(const ConstTensor& a, const ConstTensor& b) {
  const auto size = static_cast<int64_t>(size_of(a.dtype));
  const auto past = [](const ConstTensor& t) {
    return reinterpret_cast<uintptr_t>(t.data) % kWideBytes;
  };
  return past(a) == past(b) &&
         (a.rows() == 1 || (a.stride[0] - b.stride[0]) * size % kWideBytes == 0);
}

struct LossTerms {
  const int32_t* targets;
  const float* weight;
  const double* grad_scale;  // null: 1
  int64_t columns, column_begin;
  double classes, smoothing, z_loss;
};

inline LossTerms loss_terms(const ops::CrossEntropy& c) {
  return {.targets = data_of<int32_t>(c.targets),
          .weight = data_of<float>(c.weight),
          .grad_scale = c.grad_scale.present() ? data_of<double>(c.grad_scale) : nullptr,
          .columns = width_of(c.logits),
          .column_begin = c.column_begin,
          .classes = static_cast<double>(c.classes),
          .smoothing = c.smoothing,
          .z_loss = c.z_loss};
}

// The factor of every gradient, besides the weight of its row.
__device__ __forceinline__ double gradient_scale(const LossTerms& t) {
  return t.grad_scale != nullptr ? *t.grad_scale : 1.0;
}

// The loss of a row from its log(sum exp), target logit and sum of logits.
__device__ __forceinline__ float row_loss(const LossTerms& t, int32_t target, double lse,
                                          double target_logit, double sum) {
  const double value = (1 - t.smoothing) * (lse - target_logit) +
                       t.smoothing * (lse - sum / t.classes) + t.z_loss * lse * lse;
  return target >= 0 ? static_cast<float>(value) : 0.0f;
}

// The loss of rows that hold all classes.

// REQUIRES: c.stats is absent.
void cross_entropy_full_rows(Exec& ex, const ops::CrossEntropy& c);

}  // namespace bev::cuda
