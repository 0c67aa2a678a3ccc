// Every test names the fault that makes it fail.
#include "ops/matmul.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/harness.h"

namespace bev::test {
namespace {

using ops::Epilogue;
using ops::Transpose;

struct MatmulCase {
  int64_t m, n, k;
  Transpose ta = Transpose::No, tb = Transpose::No;
  Epilogue epilogue = Epilogue::None;
  Activation activation = Activation::GeluTanh;
  bool accumulate = false;
  bool keeps_argument = false;
  bool dbias = false;
  Element out = Element::Value;

  Shape a_shape() const { return ta == Transpose::No ? Shape{m, k} : Shape{k, m}; }
  Shape b_shape() const { return tb == Transpose::No ? Shape{k, n} : Shape{n, k}; }
  bool has_bias() const { return epilogue == Epilogue::Bias || epilogue == Epilogue::BiasActivate; }

  std::string name() const {
    return label(
        "m={} n={} k={} ta={} tb={} epilogue={} activation={} accumulate={} dbias={} out={}", m, n,
        k, static_cast<int>(ta), static_cast<int>(tb), static_cast<int>(epilogue),
        name_of_choice(activation), accumulate, dbias, static_cast<int>(out));
  }

  // Elements of the product are of size 1 whatever k.
  void operator()(Trial& run) const {
    const double scale = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, k)));
    // A result that is the function of a sum loses a little more than the sum.
    const int stores = epilogue == Epilogue::None || epilogue == Epilogue::Bias ? 1 : 2;
    const Bound bound{.reduction = k, .ops = stores, .magnitude = 1};
    ops::Matmul args{.a = run.input("a", a_shape()),
                     .b = run.input("b", b_shape(), Element::Value, {.scale = scale}),
                     .ta = ta,
                     .tb = tb,
                     .out = accumulate ? run.updated("out", {m, n}, out) : run.blank({m, n}, out),
                     .accumulate = accumulate,
                     .epilogue = epilogue,
                     .activation = activation};
    run.compare("out", args.out, bound);
    if (has_bias()) args.bias = run.input("bias", {n});
    if (epilogue == Epilogue::ActivateBackward) {
      args.activation_input = run.input("activation_input", {m, n}, out);
    }
    if (keeps_argument) args.pre_activation = run.output("pre_activation", {m, n}, out, bound);
    if (dbias) {
      args.dbias = run.updated("dbias", {m}, Element::Sum);
      run.compare("dbias", args.dbias,
                  {.reduction = k, .magnitude = std::sqrt(static_cast<double>(k))});
    }
    ops::matmul(run.ex(), args);
  }
};

void expect_agrees(const MatmulCase& c) { expect_cpu_agrees(c.name(), c); }

// Fails when the last row, column or depth of a tile is left out, or when ta and tb are exchanged.
TEST(Matmul, CpuAgreesAtAwkwardSizesInAllTranspositions) {
  const std::array<std::array<int64_t, 3>, 20> sizes{
      {{1, 1, 1},    {1, 7, 3},   {2, 1, 5},    {5, 3, 1},    {7, 8, 9},
       {8, 16, 32},  {9, 17, 33}, {13, 11, 17}, {15, 31, 63}, {16, 15, 64},
       {17, 33, 65}, {31, 32, 8}, {33, 64, 16}, {63, 65, 7},  {64, 63, 31},
       {65, 9, 15},  {3, 129, 5}, {0, 4, 3},    {4, 0, 3},    {3, 5, 0}}};
  for (const auto& [m, n, k] : sizes) {
    for (const Transpose ta : {Transpose::No, Transpose::Yes}) {
      for (const Transpose tb : {Transpose::No, Transpose::Yes}) {
        expect_agrees({.m = m, .n = n, .k = k, .ta = ta, .tb = tb});
      }
    }
  }
}

// Fails when the blocks of a large product are summed in the wrong place or overwrite each other.
TEST(Matmul, CpuAgreesAcrossBlocks) {
  expect_agrees({.m = 197, .n = 131, .k = 523, .tb = Transpose::Yes});
  expect_agrees({.m = 67, .n = 1031, .k = 129});
  expect_agrees({.m = 257,
                 .n = 70,
                 .k = 1025,
                 .ta = Transpose::Yes,
                 .accumulate = true,
                 .out = Element::Sum});
}

// Fails when a bias is added per row, an activation is applied before the bias, or the argument
// kept is the activated value.
TEST(Matmul, CpuAgreesInEveryEpilogue) {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{1, 1, 2}, {17, 33, 9}, {64, 65, 300}}) {
    expect_agrees({.m = m, .n = n, .k = k, .tb = Transpose::Yes, .epilogue = Epilogue::Bias});
    for (const Activation activation :
         {Activation::GeluTanh, Activation::GeluErf, Activation::Relu, Activation::SquaredRelu}) {
      for (const Epilogue epilogue :
           {Epilogue::Activate, Epilogue::BiasActivate, Epilogue::ActivateBackward}) {
        for (const bool keeps : {false, true}) {
          if (keeps && epilogue == Epilogue::ActivateBackward) continue;
          expect_agrees({.m = m,
                         .n = n,
                         .k = k,
                         .tb = Transpose::Yes,
                         .epilogue = epilogue,
                         .activation = activation,
                         .keeps_argument = keeps});
        }
      }
    }
  }
}

// Fails when the old content is dropped, added twice (once per block of k), or added after the
// epilogue instead of before.
TEST(Matmul, CpuAgreesWhenAccumulating) {
  for (const Element out : {Element::Value, Element::Sum}) {
    for (const auto& [m, n, k] :
         {std::array<int64_t, 3>{1, 1, 1}, {31, 17, 64}, {9, 65, 1300}, {3, 5, 0}}) {
      for (const Epilogue epilogue : {Epilogue::None, Epilogue::Bias, Epilogue::BiasActivate}) {
        expect_agrees({.m = m,
                       .n = n,
                       .k = k,
                       .ta = Transpose::Yes,
                       .epilogue = epilogue,
                       .accumulate = true,
                       .out = out});
      }
    }
  }
}

// The product of a weight gradient: dweight [m, n] += dy^T x, dbias [m] += sums of dy over tokens.
// Fails when dbias is overwritten, or is added once per block of columns.
TEST(Matmul, CpuAgreesOnBiasGradient) {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{1, 1, 1}, {17, 9, 33}, {65, 600, 130}}) {
    for (const Transpose ta : {Transpose::Yes, Transpose::No}) {
      expect_agrees({.m = m,
                     .n = n,
                     .k = k,
                     .ta = ta,
                     .accumulate = true,
                     .dbias = true,
                     .out = Element::Sum});
    }
  }
}

// Fails when f32 results of bf16 operands are rounded to bf16 on the way.
TEST(Matmul, CpuKeepsAccumulationTypeOfResult) {
  expect_agrees({.m = 19, .n = 23, .k = 300, .tb = Transpose::Yes, .out = Element::Sum});
}

// y = activation(x w^T + bias), loss = sum(dy * y). The gradients come from products alone.
struct LinearGradient {
  Activation activation;
  int64_t tokens = 5, in = 4, out = 3;

  void check() const {
    Trial run(gradient_run());
    Exec& ex = run.ex();
    const Tensor x = run.updated("x", {tokens, in});
    const Tensor w = run.updated("w", {out, in});
    const Tensor bias = run.updated("bias", {out});
    const ConstTensor dy = run.input("dy", {tokens, out});
    const Tensor y = run.blank({tokens, out}), argument = run.blank({tokens, out});
    const auto loss = [&] {
      ops::matmul(ex, {.a = x,
                       .b = w,
                       .tb = Transpose::Yes,
                       .out = y,
                       .epilogue = Epilogue::BiasActivate,
                       .bias = bias,
                       .activation = activation,
                       .pre_activation = argument});
      return inner(dy, y);
    };
    loss();
    // dargument = (dy I) * activation'(argument): the epilogue under test on a product with I.
    std::vector<double> unit(static_cast<size_t>(out * out), 0.0);
    for (int64_t i = 0; i < out; ++i) unit[static_cast<size_t>(i * out + i)] = 1;
    const Tensor dargument = run.blank({tokens, out});
    ops::matmul(ex, {.a = dy,
                     .b = run.given({out, out}, unit),
                     .out = dargument,
                     .epilogue = Epilogue::ActivateBackward,
                     .activation = activation,
                     .activation_input = argument});
    const Tensor dx = run.blank({tokens, in});
    ops::matmul(ex, {.a = dargument, .b = w, .out = dx});
    const std::vector<double> zeros(static_cast<size_t>(out * in), 0.0);
    const Tensor dw = run.updated_given({out, in}, zeros);
    const Tensor dbias = run.updated_given({out}, std::span(zeros).first(static_cast<size_t>(out)));
    ops::matmul(ex, {.a = dargument,
                     .b = x,
                     .ta = Transpose::Yes,
                     .out = dw,
                     .accumulate = true,
                     .dbias = dbias});
    expect_gradient("x", x, dx, loss);
    expect_gradient("w", w, dw, loss);
    expect_gradient("bias", bias, dbias, loss);
  }
};

// Fails when any slope is wrong by 1e-6, for example gelu's without the derivative of its tanh.
TEST(Matmul, GradientsMatchDifferences) {
  for (const Activation activation :
       {Activation::GeluTanh, Activation::GeluErf, Activation::Relu, Activation::SquaredRelu}) {
    SCOPED_TRACE(name_of_choice(activation));
    LinearGradient{activation}.check();
  }
}

}  // namespace
}  // namespace bev::test
