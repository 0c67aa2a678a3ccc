#include "ops/activation.h"

#include <cmath>

#include "ops/op_table.h"
#include "ops/reference/at.h"
#include "ops/reference/scalar.h"

namespace bev::reference {

namespace {

constexpr double kSqrtTwoOverPi = 0.79788456080286535588;
constexpr double kSqrtHalf = 0.70710678118654752440;
constexpr double kInverseSqrtTwoPi = 0.39894228040143267794;
constexpr double kCubic = 0.044715;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double gelu_tanh_argument(double x) { return kSqrtTwoOverPi * (x + kCubic * x * x * x); }

}  // namespace

double activation_value(Activation activation, double x) {
  switch (activation) {
    case Activation::GeluTanh:
    case Activation::GeGluTanh: return 0.5 * x * (1 + std::tanh(gelu_tanh_argument(x)));
    case Activation::GeluErf:
    case Activation::GeGluErf: return 0.5 * x * (1 + std::erf(x * kSqrtHalf));
    case Activation::Relu: return x > 0 ? x : 0;
    case Activation::SquaredRelu: return x > 0 ? x * x : 0;
    case Activation::SwiGlu: return x * sigmoid(x);
  }
  return 0;
}

double activation_slope(Activation activation, double x) {
  switch (activation) {
    case Activation::GeluTanh:
    case Activation::GeGluTanh: {
      const double t = std::tanh(gelu_tanh_argument(x));
      const double inner = kSqrtTwoOverPi * (1 + 3 * kCubic * x * x);
      return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner;
    }
    case Activation::GeluErf:
    case Activation::GeGluErf:
      return 0.5 * (1 + std::erf(x * kSqrtHalf)) + x * kInverseSqrtTwoPi * std::exp(-0.5 * x * x);
    case Activation::Relu: return x > 0 ? 1 : 0;
    case Activation::SquaredRelu: return x > 0 ? 2 * x : 0;
    case Activation::SwiGlu: {
      const double s = sigmoid(x);
      return s + x * s * (1 - s);
    }
  }
  return 0;
}

void activate(Exec&, const ops::Activate& a) {
  require_f64("activate", a.x.dtype);
  const int64_t width = a.y.shape[1];
  for (int64_t r = 0; r < a.y.rows(); ++r) {
    for (int64_t c = 0; c < width; ++c) {
      const double y = activation_value(a.activation, at(a.x, r, c));
      at(a.y, r, c) = is_gated(a.activation) ? y * at(a.x, r, width + c) : y;
    }
  }
}

void activate_backward(Exec&, const ops::ActivateBackward& a) {
  require_f64("activate_backward", a.x.dtype);
  const int64_t width = a.dy.shape[1];
  for (int64_t r = 0; r < a.dy.rows(); ++r) {
    for (int64_t c = 0; c < width; ++c) {
      const double dy = at(a.dy, r, c);
      const double x = at(a.x, r, c);
      if (is_gated(a.activation)) {
        const double up = at(a.x, r, width + c);
        at(a.dx, r, c) = dy * up * activation_slope(a.activation, x);
        at(a.dx, r, width + c) = dy * activation_value(a.activation, x);
      } else {
        at(a.dx, r, c) = dy * activation_slope(a.activation, x);
      }
    }
  }
}

}  // namespace bev::reference
