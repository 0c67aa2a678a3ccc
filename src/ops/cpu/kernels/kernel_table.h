// Assembles the kernels of one instruction set. For kernel files (see simd.h).
#pragma once

#include "ops/cpu/attention/attention_backward_kernels.h"
#include "ops/cpu/attention/attention_kernels.h"
#include "ops/cpu/attention/decode_attention_kernels.h"
#include "ops/cpu/kernels/dropout_kernels.h"
#include "ops/cpu/kernels/elementwise_kernels.h"
#include "ops/cpu/kernels/lamb_kernels.h"
#include "ops/cpu/kernels/norm_kernels.h"
#include "ops/cpu/kernels/reduce_kernels.h"
#include "ops/cpu/kernels/sampling_kernels.h"
#include "ops/cpu/kernels/update_kernels.h"

namespace bev::cpu {

template <class V, class T>
constexpr TypedKernels<T> make_typed_kernels() {
  return {.norm_row = norm_row<V, T>,
          .norm_backward_row = norm_backward_row<V, T>,
          .norm_weight_rows = norm_weight_rows<V, T>,
          .norm_summed_rows = norm_summed_rows<V, T>,
          .add = add<V, T>,
          .dropout = dropout<V, T>,
          .rope = rope<V, T>,
          .activate = activate<V, T>,
          .activate_backward = activate_backward<V, T>,
          .accumulate = accumulate<V, T>,
          .sum_of_squares = sum_of_squares<V, T>,
          .softmax_sums = softmax_sums<V, T>,
          .softmax_gradient = softmax_gradient<V, T>,
          .adamw = adamw<V, T>,
          .sgd = sgd<V, T>,
          .lamb_update = lamb_update<V, T>,
          .attention_forward = attention_forward<V, T>,
          .attention_backward_queries = attention_backward_queries<V, T>,
          .attention_backward_keys = attention_backward_keys<V, T>,
          .decode_attention = decode_attention<V, T>,
          .finite_logits = finite_logits<V, T>};
}

template <class V>
constexpr Kernels make_kernels() {
  return {.f32 = make_typed_kernels<V, float>(),
          .b16 = make_typed_kernels<V, bf16>(),
          .to_bf16 = convert<V, float, bf16>,
          .to_f32 = convert<V, bf16, float>,
          .largest_of = largest_of<V>,
          .choice_weights = choice_weights<V>,
          .lamb_moments = lamb_moments<V>};
}

}  // namespace bev::cpu
