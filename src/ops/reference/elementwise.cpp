#include "ops/elementwise.h"

#include <cmath>
#include <cstring>
#include <type_traits>

#include "base/philox.h"
#include "ops/op_table.h"
#include "ops/reference/element.h"
#include "tensor/dtype_dispatch.h"

namespace bev::reference {

namespace {

// The short types round from float.
template <class T>
T from_double(double value) {
  if constexpr (std::is_same_v<T, bf16> || std::is_same_v<T, f16>) {
    return T(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

template <class From, class To>
void convert(const ConstTensor& in, const Tensor& out) {
  for (int64_t c = 0; c < in.shape[0]; ++c) {
    element<To>(out, c) = from_double<To>(static_cast<double>(element<From>(in, c)));
  }
}

template <class T>
void fill_row(const Tensor& out, double value) {
  for (int64_t c = 0; c < out.shape[0]; ++c) element<T>(out, c) = from_double<T>(value);
}

}  // namespace

// The one op with operands of every dtype: it is how other types are reached at all.
void copy(Exec&, const ops::Copy& c) {
  for (int64_t r = 0; r < row_count(c.in.shape); ++r) {
    const ConstTensor in = row(c.in, r);
    const Tensor out = row(c.out, r);
    if (in.dtype == out.dtype) {
      if (bytes_of(in) > 0) std::memmove(out.data, in.data, bytes_of(in));
      continue;
    }
    visit_floating(in.dtype, "copy", [&]<class From>() {
      visit_floating(out.dtype, "copy", [&]<class To>() { convert<From, To>(in, out); });
    });
  }
}

void fill(Exec&, const ops::Fill& f) {
  for (int64_t r = 0; r < row_count(f.out.shape); ++r) {
    const Tensor out = row(f.out, r);
    switch (out.dtype) {
      case DType::i64: fill_row<int64_t>(out, f.value); break;
      case DType::i32: fill_row<int32_t>(out, f.value); break;
      case DType::u8: fill_row<uint8_t>(out, f.value); break;
      default: visit_floating(out.dtype, "fill", [&]<class T>() { fill_row<T>(out, f.value); });
    }
  }
}

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
    case Activation::Tanh: return std::tanh(x);
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
    case Activation::Tanh: return 1 - std::tanh(x) * std::tanh(x);
    case Activation::SwiGlu: {
      const double s = sigmoid(x);
      return s + x * s * (1 - s);
    }
  }
  return 0;
}

void scale(Exec&, const ops::Scaling& s) {
  require_f64("scale", s.x.dtype);
  for (int64_t r = 0; r < s.x.rows(); ++r)
    for (int64_t c = 0; c < s.x.shape[1]; ++c) at(s.y, r, c) = s.factor * at(s.x, r, c);
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

double dropout_factor(const ops::Dropout& dropout, int64_t r, int64_t c) {
  if (dropout.probability == 0) return 1;
  const auto logical_row = static_cast<uint64_t>(element<int64_t>(dropout.rows, r));
  const auto column = static_cast<uint64_t>(dropout.column_begin + c);
  const uint32_t draw = philox(dropout.key, logical_row, column / 4)[column % 4];
  return draw < ops::dropout_threshold(dropout.probability) ? 0 : 1 / (1 - dropout.probability);
}

void dropout(Exec&, const ops::DropoutApply& d) {
  require_f64("dropout", d.x.dtype);
  for (int64_t r = 0; r < d.x.rows(); ++r) {
    for (int64_t c = 0; c < d.x.shape[1]; ++c) {
      at(d.y, r, c) = dropout_factor(d.dropout, r, c) * at(d.x, r, c);
    }
  }
}

void residual_add(Exec&, const ops::ResidualAdd& a) {
  require_f64("residual_add", a.residual.dtype);
  for (int64_t r = 0; r < a.out.rows(); ++r) {
    for (int64_t c = 0; c < a.out.shape[1]; ++c) {
      at(a.out, r, c) = at(a.residual, r, c) + dropout_factor(a.dropout, r, c) * at(a.delta, r, c);
    }
  }
}

}  // namespace bev::reference
