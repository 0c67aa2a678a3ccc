// The non-linearities of the MLP and their slopes, of one element.
#pragma once

#include "base/philox.h"
#include "config/choices.h"
#include "ops/cuda/primitives/vector_rows.cuh"
#include "ops/elementwise.h"

namespace bev::cuda {

constexpr float kSqrtTwoOverPi = 0.7978845608f;
constexpr float kSqrtHalf = 0.7071067812f;
constexpr float kInverseSqrtTwoPi = 0.3989422804f;
constexpr float kCubic = 0.044715f;

// s = 1 / (1 + e) and s (1 - s) without cancellation, e = exp(-x).
struct Sigmoid {
  float value, slope;
  __device__ __forceinline__ explicit Sigmoid(float x) {
    const float e = __expf(fminf(-x, 80.0f));  // finite, so that e * value is
    value = __fdividef(1.0f, 1.0f + e);
    slope = e * value * value;
  }
};

// 0.5 (1 + tanh(u)) = sigmoid(2 u): the argument 2 u of gelu-tanh.
__device__ __forceinline__ float gelu_argument(float x) {
  return 2 * kSqrtTwoOverPi * (x + kCubic * x * x * x);
}

constexpr bool is_gelu_tanh(Activation a) {
  return a == Activation::GeluTanh || a == Activation::GeGluTanh;
}
constexpr bool is_gelu_erf(Activation a) {
  return a == Activation::GeluErf || a == Activation::GeGluErf;
}

// The activation of the argument or, for a gated one, of the gate.
template <Activation kActivation>
struct Function {
  float value, slope;
  __device__ __forceinline__ explicit Function(float x) {
    if constexpr (is_gelu_tanh(kActivation)) {
      const Sigmoid s(gelu_argument(x));
      value = x * s.value;
      slope = s.value + x * s.slope * (2 * kSqrtTwoOverPi * (1 + 3 * kCubic * x * x));
    } else if constexpr (is_gelu_erf(kActivation)) {
      const float below = 0.5f * (1 + erff(x * kSqrtHalf));  // the normal distribution
      value = x * below;
      slope = below + x * kInverseSqrtTwoPi * __expf(-0.5f * x * x);
    } else if constexpr (kActivation == Activation::Relu) {
      value = x > 0 ? x : 0.0f;
      slope = x > 0 ? 1.0f : 0.0f;
    } else if constexpr (kActivation == Activation::SquaredRelu) {
      value = x > 0 ? x * x : 0.0f;
      slope = x > 0 ? 2 * x : 0.0f;
    } else if constexpr (kActivation == Activation::Tanh) {
      value = tanhf(x);
      slope = 1 - value * value;
    } else {
      const Sigmoid s(x);
      value = x * s.value;
      slope = s.value + x * s.slope;
    }
  }
};

// The draws of dropout on the device: the same words of philox, compared with the same threshold,
// as on every other device.

struct DropoutDraws {
  explicit DropoutDraws(const ops::Dropout& d)
      : key(d.key),
        rows(reinterpret_cast<const int64_t*>(d.rows.data)),
        column_begin(static_cast<uint64_t>(d.column_begin)),
        threshold(static_cast<uint32_t>(ops::dropout_threshold(d.probability))),
        scale(static_cast<float>(1 / (1 - d.probability))),
        active(d.probability > 0) {}

  // Bit j: whether column + j of the local row is kept, for the columns of a group.
  __device__ __forceinline__ unsigned kept(int64_t row, int64_t column) const {
    const uint64_t logical_row = static_cast<uint64_t>(rows[row]);
    const uint64_t first = column_begin + static_cast<uint64_t>(column);
    const unsigned phase = static_cast<unsigned>(first % 4);
    unsigned bits = kept_of_block(logical_row, first / 4);
    bits |= kept_of_block(logical_row, first / 4 + 1) << 4;
    if (phase != 0) bits |= kept_of_block(logical_row, first / 4 + 2) << 8;
    return bits >> phase;
  }
  __device__ __forceinline__ bool keeps(int64_t row, int64_t column) const {
    const uint64_t first = column_begin + static_cast<uint64_t>(column);
    return kept_of_block(static_cast<uint64_t>(rows[row]), first / 4) >> (first % 4) & 1u;
  }

  uint64_t key;
  const int64_t* rows;
  uint64_t column_begin;
  uint32_t threshold;  // probability < 1, so that 32 bits hold it
  float scale;
  bool active;

 private:
  __device__ __forceinline__ unsigned kept_of_block(uint64_t logical_row, uint64_t block) const {
    const PhiloxBlock words = philox(key, logical_row, block);
    unsigned bits = 0;
#pragma unroll
    for (int j = 0; j < 4; ++j) bits |= (words[j] >= threshold ? 1u : 0u) << j;
    return bits;
  }
};

}  // namespace bev::cuda
