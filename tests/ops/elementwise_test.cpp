// Every test names the fault that makes it fail.
#include "ops/elementwise.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>

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

// The same, and f64 among the types. Larger than one wave of blocks.
TEST(Elementwise, CudaCopyAgrees) {
  std::vector<Shape> shapes = kShapes;
  shapes.insert(shapes.end(), {{97, 768}, {3, 769}, {2, 50257}});
  for (const Shape& shape : shapes) {
    for (const Element from : {Element::Value, Element::Sum, Element::F64}) {
      for (const Element to : {Element::Value, Element::Sum, Element::F64}) {
        const Convert c{shape, from, to};
        expect_cuda_agrees(c.name(), c);
      }
    }
  }
}

struct Scaled {
  Shape shape;

  void operator()(Trial& run) const {
    ops::scale(run.ex(), {.x = run.input("x", shape, Element::Value),
                          .factor = 0.37,
                          .y = run.output("y", shape, Element::Value)});
  }
};

// Fails when a backend leaves the factor out, or misses the end of a row.
TEST(Elementwise, ScaleAgrees) {
  for (const Shape& shape : {Shape{1, 1}, Shape{3, 5}, Shape{17, 33}, Shape{97, 768}}) {
    const Scaled s{shape};
    expect_cpu_agrees(label("scale {}", to_string(shape)), s);
    expect_cuda_agrees(label("scale {}", to_string(shape)), s);
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

TEST(Elementwise, CudaFillAgrees) {
  for (const Shape& shape : kShapes) {
    for (const double value : {0.0, -1.5}) {
      for (const Element element : {Element::Value, Element::Sum, Element::F64}) {
        expect_cuda_agrees(to_string(shape), Constant{shape, element, value});
      }
    }
  }
}

// Fails when an integer type is filled with a part of the value's bytes, or a gap is filled.
TEST(Elementwise, CudaFillsIntegers) {
  if (no_gpu()) return;
  for (const DType dtype : {DType::i64, DType::i32, DType::u8}) {
    for (const Placement placement : {kPacked, kUnaligned, kSpaced}) {
      for (const double value : {0.0, 201.0}) {
        SCOPED_TRACE(name_of(dtype));
        Trial run({.kind = DeviceKind::Cuda, .placement = placement});
        const std::vector<int64_t> before(21 * 7, 9);
        const Tensor out = writable(run.integers({21, 7}, dtype, before));
        ops::fill(run.ex(), {.out = slice(out, 0, 4, 12), .value = value});
        std::vector<double> expected(21 * 7, 9);
        std::fill_n(expected.begin() + 4 * 7, 12 * 7, value);
        EXPECT_EQ(run.read(out), expected);
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
TEST(Elementwise, CudaCopiesIntegers) {
  if (no_gpu()) return;
  expect_integers_copied(DeviceKind::Cuda);
}

// Rows of a few bytes with gaps between them. Fails when the rows are taken for adjacent.
TEST(Elementwise, CudaCopiesBytesWithGaps) {
  if (no_gpu()) return;
  for (const int64_t width : {1, 2, 4, 8, 16, 24}) {
    Trial run({.kind = DeviceKind::Cuda, .placement = kSpaced});
    const std::vector<int64_t> values = random_integers(5, 9 * width, 0, 256);
    const ConstTensor in = run.integers({9, width}, DType::u8, values);
    const std::vector<int64_t> zeros(values.size(), 0);
    const Tensor out = writable(run.integers({9, width}, DType::u8, zeros));
    ops::copy(run.ex(), {.in = in, .out = out});
    EXPECT_EQ(run.read(in), run.read(out));
  }
}

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

// What ops::copy makes of numbers given as bits.
template <class From, class To>
std::vector<To> copied(const std::vector<From>& values) {
  Trial run({.kind = DeviceKind::Cuda});
  Device& device = run.ex().device;
  const auto count = static_cast<int64_t>(values.size());
  Buffer in(device, values.size() * sizeof(From), "in");
  Buffer out(device, values.size() * sizeof(To), "out");
  device.upload(values.data(), in.data(), in.bytes());
  ops::copy(run.ex(), {.in = tensor_over(in.data(), DTypeOf<From>::value, {count}),
                       .out = tensor_over(out.data(), DTypeOf<To>::value, {count})});
  std::vector<To> result(values.size());
  device.download(out.data(), result.data(), out.bytes());
  return result;
}

template <class From, class To>
void expect_host_rounding(const std::vector<From>& values) {
  const std::vector<To> found = copied<From, To>(values);
  size_t wrong = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto single = static_cast<float>(values[i]);
    const To expected(single);
    if (std::memcmp(&expected, &found[i], sizeof expected) != 0 && ++wrong < 4) {
      ADD_FAILURE() << name_of(DTypeOf<From>::value) << " to " << name_of(DTypeOf<To>::value)
                    << ": element " << i << ", " << single;
    }
  }
  EXPECT_EQ(wrong, 0u);
}

// All numbers of the short types, and f32 numbers around every place where rounding turns: ties,
// subnormals, the largest, infinities and NaN of either sign. Fails when the bits are not those of
// base/float_types.h.
TEST(Elementwise, CudaConvertsToTheBit) {
  if (no_gpu()) return;
  std::vector<bf16> all_bf16(65536);
  std::vector<f16> all_f16(65536);
  std::vector<float> singles;
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    all_bf16[bits].bits = static_cast<uint16_t>(bits);
    all_f16[bits].bits = static_cast<uint16_t>(bits);
    for (const uint32_t low : {0u, 1u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu, 0x1000u, 0x1001u}) {
      singles.push_back(std::bit_cast<float>(bits << 16 | low));
    }
    const auto half = std::bit_cast<uint32_t>(static_cast<float>(all_f16[bits]));
    for (const uint32_t off : {0xFFFu, 0x1000u, 0x1001u, 0x1FFFu}) {
      singles.push_back(std::bit_cast<float>(half + off));
    }
  }
  expect_host_rounding<float, bf16>(singles);
  expect_host_rounding<float, f16>(singles);
  expect_host_rounding<bf16, float>(all_bf16);
  expect_host_rounding<bf16, f16>(all_bf16);
  expect_host_rounding<f16, float>(all_f16);
  expect_host_rounding<f16, bf16>(all_f16);
}

}  // namespace
}  // namespace bev::test
