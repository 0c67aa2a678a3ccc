// Every test names the fault that makes it fail.
#include "ops/elementwise.h"

#include <gtest/gtest.h>

#include "ops/harness.h"

namespace bev::test {
namespace {

const std::vector<Shape> kShapes{{1},
                                 {0},
                                 {7},
                                 {65},
                                 {1000},
                                 {1, 1},
                                 {0, 8},
                                 {3, 5},
                                 {9, 16},
                                 {17, 33},
                                 {2, 3, 5},
                                 {4, 1, 9},
                                 {2, 3, 2, 7},
                                 {kSharedRows * kSharedWidth},
                                 {kSharedRows, kSharedWidth}};

struct Convert {
  Shape shape;
  Element from, to;

  std::string name() const {
    return label("{} {} to {}", to_string(shape), static_cast<int>(from), static_cast<int>(to));
  }
  void operator()(Trial& run) const {
    ops::copy(run.ex(), {.in = run.input("in", shape, from), .out = run.output("out", shape, to)});
  }
};

// In the bf16 runs Value is bf16 and Sum is f32. Fails when conversion truncates instead of
// rounding (twice the tolerance), or the rows of a strided tensor are taken as adjacent.
TEST(Elementwise, CpuCopyAgrees) {
  for (const Shape& shape : kShapes) {
    for (const Element from : {Element::Value, Element::Sum}) {
      for (const Element to : {Element::Value, Element::Sum}) {
        const Convert c{shape, from, to};
        expect_cpu_agrees(c.name(), c);
      }
    }
  }
}

struct Constant {
  Shape shape;
  Element element;
  double value;

  void operator()(Trial& run) const {
    ops::fill(run.ex(), {.out = run.output("out", shape, element), .value = value});
  }
};

// Fails when gaps between rows are filled as well, or the tail is not.
TEST(Elementwise, CpuFillAgrees) {
  for (const Shape& shape : kShapes) {
    for (const double value : {0.0, -1.5}) {
      for (const Element element : {Element::Value, Element::Sum}) {
        expect_cpu_agrees(to_string(shape), Constant{shape, element, value});
      }
    }
  }
}

// Integers are copied, not converted through a floating type. Fails when they pass
// through f32.
void expect_integers_copied(DeviceKind kind) {
  Trial run({.kind = kind, .storage = DType::f32, .exact_in = DType::f32});
  const std::vector<int64_t> values{0, -5, int64_t{1} << 40, 7};
  const ConstTensor in = run.integers({2, 2}, DType::i64, values);
  const Tensor out = writable(run.integers({2, 2}, DType::i64, std::vector<int64_t>(4, 1)));
  ops::copy(run.ex(), {.in = in, .out = out});
  EXPECT_EQ(run.read(in), run.read(out));
}

TEST(Elementwise, CopiesIntegers) { expect_integers_copied(DeviceKind::Reference); }
TEST(Elementwise, CpuCopiesIntegers) { expect_integers_copied(DeviceKind::Cpu); }

// To bf16 and f16 and back: ties to even, infinities kept. Fails when the low bits are cut off.
TEST(Elementwise, ReferenceConvertsShortTypes) {
  Trial run(TrialSpec{});
  const std::vector<double> values{1, -2.5, 1.00390625, 1.01171875, 65536, 3.4e38};
  const ConstTensor in = run.given({6}, values);
  Buffer memory(run.ex().device, 64, "short");
  const Tensor back = run.blank({6});
  const Tensor as_bf16 = tensor_over(memory.data(), DType::bf16, {6});
  ops::copy(run.ex(), {.in = in, .out = as_bf16});
  ops::copy(run.ex(), {.in = as_bf16, .out = back});
  EXPECT_EQ(run.read(back)[1], -2.5);
  EXPECT_EQ(run.read(back)[2], 1);         // a tie: to even
  EXPECT_EQ(run.read(back)[3], 1.015625);  // a tie: to even, upwards
  const Tensor as_f16 = tensor_over(memory.data(), DType::f16, {6});
  ops::copy(run.ex(), {.in = in, .out = as_f16});
  ops::copy(run.ex(), {.in = as_f16, .out = back});
  EXPECT_EQ(run.read(back)[2], 1.00390625);
  EXPECT_EQ(run.read(back)[4], HUGE_VAL);
}

}  // namespace
}  // namespace bev::test
