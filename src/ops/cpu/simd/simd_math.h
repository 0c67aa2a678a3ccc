// Functions of vectors, written once for all instruction sets. Include simd.h instead.
// Lanes do not influence each other: the result for a number does not depend on its position.
// Polynomials are minimax fits of the relative error.
#pragma once

#include "config/choices.h"

namespace bev::cpu {

// c0 + x (c1 + x (c2 + ...)).
template <class V>
V horner(V, float c0) {
  return V::broadcast(c0);
}
template <class V, class... Rest>
V horner(V x, float c0, Rest... rest) {
  return fma(horner(x, rest...), x, V::broadcast(c0));
}

// e^x, relative error below 1.5e-7. 0 below -104, infinity from 88.73 on; NaN stays NaN.
template <class V>
V exp(V x) {
  x = min(V::broadcast(89.0f), max(V::broadcast(-104.0f), x));
  const V n = round_even(x * V::broadcast(1.44269504f));
  // ln 2 in two parts; the product with the first is exact.
  V r = fma(n, V::broadcast(-0.693359375f), x);
  r = fma(n, V::broadcast(2.12194440e-4f), r);
  const V q = horner(r, 0.49999994f, 0.166665211f, 0.041668389f, 0.00836871751f, 0.00138145965f);
  return scale(fma(r * r, q, r) + V::broadcast(1.0f), n);
}

// tanh x, relative error below 3e-7.
template <class V>
V tanh(V x) {
  const V one = V::broadcast(1.0f);
  const V t = abs(x);
  const V z = x * x;
  const V p =
      horner(z, -0.333332807f, 0.133314416f, -0.0537397154f, 0.0206390899f, -0.00570499059f);
  const V near = fma(x * z, p, x);
  const V far = one - V::broadcast(2.0f) / (exp(t + t) + one);
  return select(t < V::broadcast(0.625f), near, sign_of(far, x));
}

// erf x, relative error below 2e-7. From 0.9375 on as 1 - e^(-t - t p(t)).
template <class V>
V erf(V x) {
  const V t = min(V::broadcast(4.0f), abs(x));
  const V p = horner(t, 0.128662005f, 0.635096312f, 0.106328025f, -0.0238407403f, 0.00367973535f,
                     -0.000331989286f, 1.21506109e-05f);
  const V far = V::broadcast(1.0f) - exp(V::zero() - fma(t, p, t));
  const V q = horner(x * x, 0.128379166f, -0.376126319f, 0.112836793f, -0.0268584993f, 0.005198834f,
                     -0.00081181142f, 8.26759642e-05f);
  return select(t < V::broadcast(0.9375f), fma(x, q, x), sign_of(far, x));
}

// 1 / (1 + e^-x).
template <class V>
V sigmoid(V x) {
  const V one = V::broadcast(1.0f);
  return one / (one + exp(V::zero() - x));
}

template <class V>
V silu(V x) {
  return x * sigmoid(x);
}
// s + x s (1 - s) with 1 - s = s e^-x, which does not cancel. Beyond 80 the second term is 0.
template <class V>
V silu_slope(V x) {
  const V one = V::broadcast(1.0f);
  const V t = min(V::broadcast(80.0f), max(V::broadcast(-80.0f), x));
  const V e = exp(V::zero() - t);
  const V s = one / (one + e);
  return fma(t * s, s * e, s);
}

// 0.5 x (1 + tanh u) = x sigmoid(2 u),  u = sqrt(2/pi) (x + 0.044715 x^3).
template <class V>
V gelu_tanh_argument(V x) {  // 2 u
  constexpr float kTwoU = 2 * 0.79788456f;
  return x * fma(x * x, V::broadcast(kTwoU * 0.044715f), V::broadcast(kTwoU));
}
template <class V>
V gelu_tanh(V x) {
  return x * sigmoid(gelu_tanh_argument(x));
}
// s + x s (1 - s) 2 u' with 1 - s = s e^(-2 u). Beyond 10 the second term is 0.
template <class V>
V gelu_tanh_slope(V x) {
  constexpr float kTwoU = 2 * 0.79788456f;
  const V one = V::broadcast(1.0f);
  const V t = min(V::broadcast(10.0f), max(V::broadcast(-10.0f), x));
  const V e = exp(V::zero() - gelu_tanh_argument(t));
  const V s = one / (one + e);
  const V du = fma(t * t, V::broadcast(3 * kTwoU * 0.044715f), V::broadcast(kTwoU));
  return fma(t * s * du, s * e, s);
}

// 0.5 x (1 + erf(x / sqrt 2)).
template <class V>
V gelu_erf(V x) {
  const V half = V::broadcast(0.5f);
  return x * fma(erf(x * V::broadcast(0.70710678f)), half, half);
}
template <class V>
V gelu_erf_slope(V x) {
  const V half = V::broadcast(0.5f);
  const V cdf = fma(erf(x * V::broadcast(0.70710678f)), half, half);
  const V density = exp(x * x * V::broadcast(-0.5f)) * V::broadcast(0.39894228f);
  return fma(x, density, cdf);
}

template <class V>
V relu(V x) {
  return max(V::zero(), x);
}
template <class V>
V relu_slope(V x) {
  return select(V::zero() < x, V::broadcast(1.0f), V::zero());
}
template <class V>
V squared_relu(V x) {
  return relu(x) * relu(x);
}
template <class V>
V squared_relu_slope(V x) {
  return relu(x) + relu(x);
}

// tanh(x) = 2 sigmoid(2 x) - 1; near 0 its series, where the difference would cancel.
template <class V>
V hyperbolic_tangent(V x) {
  const V one = V::broadcast(1.0f), square = x * x;
  const V t = min(V::broadcast(10.0f), max(V::broadcast(-10.0f), x));
  const V far = V::broadcast(2.0f) / (one + exp(V::broadcast(-2.0f) * t)) - one;
  V near = fma(square, V::broadcast(62.0f / 2835), V::broadcast(-17.0f / 315));
  near = fma(near, square, V::broadcast(2.0f / 15));
  near = fma(near, square, V::broadcast(-1.0f / 3));
  near = fma(near * square, x, x);
  return select(square < V::broadcast(0.09f), near, far);
}
template <class V>
V hyperbolic_tangent_slope(V x) {
  const V t = hyperbolic_tangent(x);
  return V::broadcast(1.0f) - t * t;
}

// Calls f(function, slope) with the vector functions of an activation that is not gated, or of the
// gate of one that is: one choice at run time per call, none per vector.
template <class V, class F>
void with_activation(Activation activation, F&& f) {
  switch (activation) {
    case Activation::GeluTanh:
    case Activation::GeGluTanh:
      return f([](V x) { return gelu_tanh(x); }, [](V x) { return gelu_tanh_slope(x); });
    case Activation::GeluErf:
    case Activation::GeGluErf:
      return f([](V x) { return gelu_erf(x); }, [](V x) { return gelu_erf_slope(x); });
    case Activation::Relu: return f([](V x) { return relu(x); }, [](V x) { return relu_slope(x); });
    case Activation::SquaredRelu:
      return f([](V x) { return squared_relu(x); }, [](V x) { return squared_relu_slope(x); });
    case Activation::Tanh:
      return f([](V x) { return hyperbolic_tangent(x); },
               [](V x) { return hyperbolic_tangent_slope(x); });
    case Activation::SwiGlu:
      return f([](V x) { return silu(x); }, [](V x) { return silu_slope(x); });
  }
}

}  // namespace bev::cpu
