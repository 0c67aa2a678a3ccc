// The vectorised inner loops of the cpu backend as plain functions, compiled once per instruction
// set and chosen once at run time. The op files around them cut the work into rows and threads.
//
// Every element-wise kernel gives an element the same bits wherever it stands in a row, so a row
// may be cut anywhere.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/float_types.h"
#include "config/choices.h"
#include "ops/cpu/attention/attention_problem.h"
#include "ops/cpu/simd/isa.h"

namespace bev::cpu {

// One row of Norm; mean null: RMS norm; bias may be null.
template <class T>
struct NormRow {
  const T *x, *weight, *bias;
  T* y;
  int64_t width;
  double eps;
  float *mean, *rstd;
};

// One row of NormBackward without the parameter gradients; dresidual may be null.
template <class T>
struct NormBackwardRow {
  const T *dy, *x, *weight, *dresidual;
  T* dx;
  int64_t width;
  bool centred;
  float mean, rstd;
};

// The parameter gradients of up to kNormRows rows: the rows are summed in order, then added.
constexpr int kNormRows = 8;
template <class T>
struct NormWeightRows {
  int rows;
  const T *dy[kNormRows], *x[kNormRows];
  float mean[kNormRows], rstd[kNormRows];
  float *dweight, *dbias;  // dbias may be null
};

// The sums of dx over up to kNormRows rows, in the same order.
template <class T>
struct NormSummedRows {
  int rows;
  const T* dx[kNormRows];
  float* sums;
};

// The draws of one row of Dropout, from logical column `column` on.
struct DropoutDraws {
  uint64_t key, row;
  int64_t column;
  uint32_t threshold;
  float scale;
};

// The heads of one token; sine is negative for the inverse.
template <class T>
struct RopeToken {
  T* x;
  int64_t heads, head_stride, half;
  const float *cosine, *sine;
  bool inverse;
};

struct SoftmaxSums {
  float max;
  double sum_exp, sum;
};

// dlogits = factor * exp(logit - lse) - offset
template <class T>
struct SoftmaxGradientRow {
  const T* logits;
  T* dlogits;
  int64_t columns;
  float lse, factor, offset;
};

// Weights of one range of ids for ops::SampleTokens.
struct ChoiceWeights {
  const float* logits;
  float* weights;
  int64_t count;
  float max, temperature;
  float lowest;  // logits below it have no chance
  float least;   // nor have weights below it
};

// g = factor * grad; param = rounded master. T: the dtype of param; master may be null.
template <class T>
struct AdamWRange {
  T* param;
  float *master, *m, *v;
  const float* grad;
  int64_t count;
  float factor, beta1, beta2, one_minus_beta1, one_minus_beta2;
  float step_size;         // lr / (1 - beta1^step)
  float root_correction2;  // sqrt(1 - beta2^step)
  float eps, decay;        // decay = 1 - lr * weight_decay
};

template <class T>
struct SgdRange {
  T* param;
  float *master, *buffer;
  const float* grad;
  int64_t count;
  float factor, weight_decay, momentum, lr;
  bool first;
};

// LambFactors and LambRule in f32.
struct LambScalars {
  float gradient, beta1, beta2, rest1, rest2, first, root_correction2, eps, decay, coupled_decay;
};

// A chunk of ops::LambMoments; q null: without noise.
struct LambMomentsRange {
  const float* weights;
  float *m, *v, *q;
  const float* grad;
  int64_t count;
  LambScalars scalars;
};

// A chunk of ops::LambUpdate. T: the dtype of param; master may be null, q and grad are without
// noise.
template <class T>
struct LambUpdateRange {
  T* param;
  float *master, *m;
  const float *v, *q, *grad;
  int64_t count;
  float rate, step, noise_step;  // the steps: rate * ratio
  LambScalars scalars;
};

// The kernels for operands stored as T.
template <class T>
struct TypedKernels {
  void (*norm_row)(const NormRow<T>&);
  void (*norm_backward_row)(const NormBackwardRow<T>&);
  void (*norm_weight_rows)(const NormWeightRows<T>&, int64_t begin, int64_t end);  // columns
  void (*norm_summed_rows)(const NormSummedRows<T>&, int64_t begin, int64_t end);  // columns

  // out = a + b; out may be either.
  void (*add)(const T* a, const T* b, T* out, int64_t count);
  // out = [residual +] dropout(x); residual may be null; out may be either.
  void (*dropout)(const T* x, const T* residual, T* out, int64_t count, const DropoutDraws&);

  void (*rope)(const RopeToken<T>&);

  // y = activation(x) [* up]; up is null unless the activation is gated.
  void (*activate)(Activation, const T* x, const T* up, T* y, int64_t count);
  // dx (and dup), which may be any of the operands of the same index.
  void (*activate_backward)(Activation, const T* dy, const T* x, const T* up, T* dx, T* dup,
                            int64_t count);

  // sum += x
  void (*accumulate)(const T* x, float* sum, int64_t count);
  double (*sum_of_squares)(const T* x, int64_t count);

  SoftmaxSums (*softmax_sums)(const T* logits, int64_t columns);
  void (*softmax_gradient)(const SoftmaxGradientRow<T>&);

  void (*adamw)(const AdamWRange<T>&);
  void (*sgd)(const SgdRange<T>&);
  void (*lamb_update)(const LambUpdateRange<T>&);

  // Attention over one tile, or some query tiles; see attention_problem.h. The memory holds
  // attention_workspace_bytes().
  void (*attention_forward)(const AttentionForward<T>&, int64_t head, int64_t query_begin,
                            int64_t tiles, TileMemory);
  void (*attention_backward_queries)(const AttentionGradient<T>&, int64_t head, int64_t query_begin,
                                     TileMemory);
  void (*attention_backward_keys)(const AttentionGradient<T>&, int64_t kv_head, int64_t key_begin,
                                  bool add_dq, TileMemory);
  void (*decode_attention)(const DecodeProblem<T>&, TileMemory);

  // out = the logit where it is finite, else minus infinity.
  void (*finite_logits)(const T* in, float* out, int64_t count);
};

struct Kernels {
  TypedKernels<float> f32;
  TypedKernels<bf16> b16;
  void (*to_bf16)(const float* in, bf16* out, int64_t count);
  void (*to_f32)(const bf16* in, float* out, int64_t count);
  // Minus infinity for none.
  float (*largest_of)(const float* x, int64_t count);
  // weights = exp((logits - max) / temperature) of those that have a chance, else 0. Returns their
  // sum.
  double (*choice_weights)(const ChoiceWeights&);
  // Returns the sums of squares of the weights, the update and the noise's update.
  void (*lamb_moments)(const LambMomentsRange&, double* squares);
};

extern const Kernels kAvx512Kernels, kAvx2Kernels, kPortableKernels;

const Kernels& kernels(Isa isa);
const Kernels& kernels();  // of the best instruction set of this machine

template <class T>
const TypedKernels<T>& kernels_of();
template <>
inline const TypedKernels<float>& kernels_of<float>() {
  return kernels().f32;
}
template <>
inline const TypedKernels<bf16>& kernels_of<bf16>() {
  return kernels().b16;
}

// The memory each thread of a cpu device holds for its kernels: packed panels, a row of scores.

// What the neediest kernel asks for, per thread.
size_t workspace_bytes();

}  // namespace bev::cpu
