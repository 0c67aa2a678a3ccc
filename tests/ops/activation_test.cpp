// Every test names the fault that makes it fail.
#include <gtest/gtest.h>

#include "ops/elementwise.h"
#include "ops/harness.h"

namespace bev::test {
namespace {

constexpr std::array kAll{Activation::GeluTanh,    Activation::GeluErf, Activation::Relu,
                          Activation::SquaredRelu, Activation::Tanh,    Activation::SwiGlu,
                          Activation::GeGluTanh,   Activation::GeGluErf};
// Wide enough that tanh, erf and exp saturate on both sides.
constexpr Draw kWide{.scale = 4};

struct ActivationCase {
  Activation activation;
  int64_t rows, width;

  Shape input_shape() const { return {rows, is_gated(activation) ? 2 * width : width}; }
  std::string name() const {
    return label("{} rows={} width={}", name_of_choice(activation), rows, width);
  }
};

struct ActivationForward : ActivationCase {
  void operator()(Trial& run) const {
    ops::activate(run.ex(), {.activation = activation,
                             .x = run.input("x", input_shape(), Element::Value, kWide),
                             .y = run.output("y", {rows, width})});
  }
};

enum class ActivationInPlace : uint8_t { No, OverX, OverDy };

struct ActivationBackward : ActivationCase {
  ActivationInPlace in_place = ActivationInPlace::No;

  void operator()(Trial& run) const {
    const Bound bound{.ops = 2};
    ops::ActivateBackward args;
    args.activation = activation;
    if (in_place == ActivationInPlace::OverX) {
      args.dx = run.updated("x", input_shape(), Element::Value, kWide);
      args.x = args.dx;
    } else {
      args.x = run.input("x", input_shape(), Element::Value, kWide);
    }
    if (in_place == ActivationInPlace::OverDy) {
      args.dx = run.updated("dy", {rows, width});
      args.dy = args.dx;
    } else {
      args.dy = run.input("dy", {rows, width});
    }
    if (in_place == ActivationInPlace::No) args.dx = run.blank(input_shape());
    run.compare("dx", args.dx, bound);
    ops::activate_backward(run.ex(), args);
  }
};

const std::vector<std::pair<int64_t, int64_t>> kActivationSizes{
    {1, 1},  {0, 5},  {3, 7},  {2, 8},  {5, 9},  {1, 15}, {7, 16},
    {3, 17}, {2, 31}, {4, 33}, {3, 63}, {2, 64}, {1, 65}, {kSharedRows, kSharedWidth}};

// Fails when gate and up are exchanged, when the tail of a row is skipped, or when tanh is replaced
// by an approximation worse than a few units in the last place.
TEST(Activation, CpuForwardAgrees) {
  for (const Activation activation : kAll) {
    for (const auto& [rows, width] : kActivationSizes) {
      const ActivationForward c{{activation, rows, width}};
      expect_cpu_agrees(c.name(), c);
    }
  }
}

// Fails when dx of the up half misses the activation, or relu passes at negative x.
TEST(Activation, CpuBackwardAgrees) {
  for (const Activation activation : kAll) {
    for (const auto& [rows, width] : kActivationSizes) {
      const ActivationBackward c{{activation, rows, width}};
      expect_cpu_agrees(c.name(), c);
    }
  }
}

// Fails when the gate is overwritten before the up half has read it.
TEST(Activation, CpuBackwardAgreesInPlace) {
  for (const Activation activation : kAll) {
    for (const auto& [rows, width] : {kActivationSizes[4], kActivationSizes.back()}) {
      const ActivationBackward over_x{{activation, rows, width}, ActivationInPlace::OverX};
      expect_cpu_agrees(over_x.name() + " over x", over_x);
      if (is_gated(activation)) continue;
      const ActivationBackward over_dy{{activation, rows, width}, ActivationInPlace::OverDy};
      expect_cpu_agrees(over_dy.name() + " over dy", over_dy);
    }
  }
}

const std::vector<std::pair<int64_t, int64_t>> kActivationLargeSizes{
    {9, 768}, {3, 769}, {97, 3072}, {2, 8192}};

TEST(Activation, CudaForwardAgrees) {
  for (const Activation activation : kAll) {
    for (const auto& [rows, width] : kActivationSizes) {
      const ActivationForward c{{activation, rows, width}};
      expect_cuda_agrees(c.name(), c);
    }
    for (const auto& [rows, width] : kActivationLargeSizes) {
      const ActivationForward c{{activation, rows, width}};
      expect_cuda_agrees(c.name(), c, Storage::Alike);
    }
  }
}

TEST(Activation, CudaBackwardAgrees) {
  for (const Activation activation : kAll) {
    for (const auto& [rows, width] : kActivationSizes) {
      const ActivationBackward c{{activation, rows, width}};
      expect_cuda_agrees(c.name(), c);
    }
    for (const auto& [rows, width] : kActivationLargeSizes) {
      const ActivationBackward c{{activation, rows, width}};
      expect_cuda_agrees(c.name(), c, Storage::Alike);
    }
  }
}

TEST(Activation, CudaBackwardAgreesInPlace) {
  for (const Activation activation : kAll) {
    for (const auto& [rows, width] : {kActivationSizes[4], kActivationSizes[6],
                                      kActivationSizes.back(), kActivationLargeSizes[0]}) {
      const ActivationBackward over_x{{activation, rows, width}, ActivationInPlace::OverX};
      expect_cuda_agrees(over_x.name() + " over x", over_x);
      if (is_gated(activation)) continue;
      const ActivationBackward over_dy{{activation, rows, width}, ActivationInPlace::OverDy};
      expect_cuda_agrees(over_dy.name() + " over dy", over_dy);
    }
  }
}

// Fails when a slope is not the derivative of its value.
TEST(Activation, GradientsMatchDifferences) {
  for (const Activation activation : kAll) {
    SCOPED_TRACE(name_of_choice(activation));
    const ActivationCase c{activation, 4, 5};
    Trial run(gradient_run());
    const Tensor x = run.updated("x", c.input_shape());
    const ConstTensor dy = run.input("dy", {c.rows, c.width});
    const Tensor y = run.blank({c.rows, c.width}), dx = run.blank(c.input_shape());
    ops::activate_backward(run.ex(), {.activation = activation, .dy = dy, .x = x, .dx = dx});
    expect_gradient("x", x, dx, [&] {
      ops::activate(run.ex(), {.activation = activation, .x = x, .y = y});
      return inner(dy, y);
    });
  }
}

// Values from tables of the normal distribution and of tanh, not from this code.
// Fails when gelu-tanh and gelu-erf are exchanged, or the constant 0.044715 is mistyped.
TEST(Activation, KnownValues) {
  const auto value = [](Activation activation, double x, double up) {
    Trial run(TrialSpec{});
    const std::vector<double> both{x, up};
    const int64_t width = is_gated(activation) ? 2 : 1;
    const Tensor y = run.blank({1, 1});
    ops::activate(run.ex(),
                  {.activation = activation,
                   .x = run.given({1, width}, std::span(both).first(static_cast<size_t>(width))),
                   .y = y});
    return run.read(y)[0];
  };
  EXPECT_NEAR(value(Activation::GeluErf, 1, 0), 0.8413447460685429, 1e-15);
  EXPECT_NEAR(value(Activation::GeluTanh, 1, 0), 0.8411919906082768, 1e-15);
  EXPECT_NEAR(value(Activation::GeluErf, -2, 0), -0.04550026389635842, 1e-15);
  EXPECT_EQ(value(Activation::Relu, -2, 0), 0);
  EXPECT_EQ(value(Activation::SquaredRelu, 3, 0), 9);
  EXPECT_NEAR(value(Activation::Tanh, 1, 0), 0.7615941559557649, 1e-15);
  EXPECT_NEAR(value(Activation::SwiGlu, 1, 2), 2 * 0.7310585786300049, 1e-15);
  EXPECT_NEAR(value(Activation::GeGluErf, 1, 3), 3 * 0.8413447460685429, 1e-15);
  EXPECT_NEAR(value(Activation::GeGluTanh, 1, 3), 3 * 0.8411919906082768, 1e-15);
}

}  // namespace
}  // namespace bev::test
