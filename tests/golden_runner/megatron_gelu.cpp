#include "golden_runner/megatron_gelu.h"

#include <cmath>

#include "ops/op_table.h"
#include "ops/reference/element.h"

namespace bev::golden {

namespace {

using reference::at;

constexpr double kOuter = 0.79788456, kCubic = 0.044715;
constexpr double kSlopeCubic = 0.1070322243;  // of the backward, written there with these digits

// The devices that compute in f32 need no choice between the two constants.
static_assert(static_cast<float>(kOuter) == static_cast<float>(0.79788456080286535588));

double value_of(double x) { return 0.5 * x * (1 + std::tanh(kOuter * x * (1 + kCubic * x * x))); }

double slope_of(double x) {
  const double t = std::tanh(kOuter * x * (1 + kCubic * x * x));
  return 0.5 * x * ((1 - t * t) * (kOuter + kSlopeCubic * x * x)) + 0.5 * (1 + t);
}

void activate(Exec& ex, const ops::Activate& a) {
  if (a.activation != Activation::GeluTanh) return reference::activate(ex, a);
  for (int64_t r = 0; r < a.y.rows(); ++r)
    for (int64_t c = 0; c < a.y.shape[1]; ++c) at(a.y, r, c) = value_of(at(a.x, r, c));
}

void activate_backward(Exec& ex, const ops::ActivateBackward& a) {
  if (a.activation != Activation::GeluTanh) return reference::activate_backward(ex, a);
  for (int64_t r = 0; r < a.dx.rows(); ++r)
    for (int64_t c = 0; c < a.dx.shape[1]; ++c)
      at(a.dx, r, c) = at(a.dy, r, c) * slope_of(at(a.x, r, c));
}

void matmul(Exec& ex, const ops::Matmul& m) {
  using ops::Epilogue;
  const bool activates = m.epilogue == Epilogue::Activate || m.epilogue == Epilogue::BiasActivate;
  const bool is_gelu = m.activation == Activation::GeluTanh;
  if (!is_gelu || (!activates && m.epilogue != Epilogue::ActivateBackward))
    return reference::matmul(ex, m);
  ops::Matmul plain = m;
  plain.epilogue = m.epilogue == Epilogue::BiasActivate ? Epilogue::Bias : Epilogue::None;
  plain.pre_activation = {};
  reference::matmul(ex, plain);
  for (int64_t i = 0; i < m.out.shape[0]; ++i) {
    for (int64_t j = 0; j < m.out.shape[1]; ++j) {
      double& out = at(m.out, i, j);
      if (m.pre_activation.present()) at(m.pre_activation, i, j) = out;
      out = activates ? value_of(out) : out * slope_of(at(m.activation_input, i, j));
    }
  }
}

}  // namespace

std::unique_ptr<Device> make_megatron_reference() {
  static const OpTable ops = [] {
    OpTable table = kReferenceOps;
    table.activate = activate;
    table.activate_backward = activate_backward;
    table.matmul = matmul;
    return table;
  }();
  return std::make_unique<HostDevice>(DeviceKind::Reference, ops, 1, 0);
}

}  // namespace bev::golden
