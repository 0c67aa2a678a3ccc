// The non-linearities of the MLP and their slopes, of one element.
#pragma once

#include "config/choices.h"

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
    } else {
      const Sigmoid s(x);
      value = x * s.value;
      slope = s.value + x * s.slope;
    }
  }
};

}  // namespace bev::cuda
