// Every test names the fault that makes it fail.
#include <gtest/gtest.h>

#include "ops/harness.h"
#include "ops/reduce.h"

namespace bev::test {
namespace {

const std::vector<int64_t> kLengths{0, 1, 7, 8, 9, 64, 65, 1025, kSharedRows* kSharedWidth};

struct Combining {
  int64_t n;
  int parts;
  ReduceOp op;
  Element element = Element::Value;
  int in_place = -1;  // the part that is also the result

  void operator()(Trial& run) const {
    std::vector<ConstTensor> all;
    Tensor out;
    for (int p = 0; p < parts; ++p) {
      const std::string name = format("part {}", p);
      if (p == in_place) {
        out = run.updated(name.c_str(), {n}, element);
        all.emplace_back(out);
      } else {
        all.push_back(run.input(name.c_str(), {n}, element));
      }
    }
    if (in_place < 0) out = run.blank({n}, element);
    run.compare("out", out, {.reduction = parts});
    ops::combine(run.ex(), {.parts = all, .op = op, .out = out});
  }
};

template <class Expect>
void expect_all(Expect expect) {
  for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min}) {
    for (const int64_t n : kLengths) {
      expect(format("n={} op={}", n, static_cast<int>(op)), Combining{n, 3, op});
      expect(format("n={} op={} in place", n, static_cast<int>(op)),
             Combining{.n = n, .parts = 4, .op = op, .in_place = 1});
    }
  }
  expect("one part", Combining{100, 1, ReduceOp::Sum});
  expect("many parts", Combining{77, static_cast<int>(ops::kMostCombined), ReduceOp::Sum});
}

// Fails when a tail is skipped, a part is left out, or one is overwritten before it is read.
TEST(Combine, CpuAgrees) {
  expect_all([](const std::string& name, const Combining& c) { expect_cpu_agrees(name, c); });
}

TEST(Combine, CudaAgrees) {
  expect_all([](const std::string& name, const Combining& c) { expect_cuda_agrees(name, c); });
}

// Losses and norms are f64 on every device. Fails when they are summed in f32.
TEST(Combine, CudaKeepsDoubles) {
  if (no_gpu()) return;
  Trial run({.kind = DeviceKind::Cuda, .storage = DType::f32, .exact_in = DType::f32});
  const std::vector<double> a{1, -3}, b{0x1p-40, 5};
  const std::vector<ConstTensor> parts{run.given({2}, a, Element::F64),
                                       run.given({2}, b, Element::F64)};
  const Tensor out = run.blank({2}, Element::F64);
  ops::combine(run.ex(), {.parts = parts, .out = out});
  EXPECT_EQ(run.read(out), (std::vector<double>{1 + 0x1p-40, 2}));
  ops::combine(run.ex(), {.parts = parts, .op = ReduceOp::Max, .out = out});
  EXPECT_EQ(run.read(out), (std::vector<double>{1, 5}));
}

}  // namespace
}  // namespace bev::test
