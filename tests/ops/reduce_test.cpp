// Every test names the fault that makes it fail.
#include "ops/reduce.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/harness.h"

namespace bev::test {
namespace {

const std::vector<int64_t> kReduceLengths{
    0, 1, 2, 7, 8, 9, 16, 17, 31, 33, 64, 65, 1000, 5003, kSharedRows* kSharedWidth};

struct Squares {
  int64_t n;
  Element element;

  void operator()(Trial& run) const {
    const Tensor out = run.updated("out", {1}, Element::F64);
    run.compare("out", out, {.reduction = n});
    ops::squared_norm(run.ex(), {.x = run.input("x", {n}, element), .out = out});
  }
};

// Fails when out is overwritten, the tail is skipped, or partial sums follow the threads.
TEST(Reduce, CpuSquaredNormAgrees) {
  for (const int64_t n : kReduceLengths) {
    expect_cpu_agrees(label("n={} values", n), Squares{n, Element::Value});
    expect_cpu_agrees(label("n={} sums", n), Squares{n, Element::Sum});
  }
}

TEST(Reduce, CudaSquaredNormAgrees) {
  for (const int64_t n : kReduceLengths) {
    expect_cuda_agrees(label("n={} values", n), Squares{n, Element::Value});
    expect_cuda_agrees(label("n={} sums", n), Squares{n, Element::Sum});
  }
  // More groups than threads in all parts of the sum.
  const int64_t many = 5000011;
  expect_cuda_agrees(label("n={}", many), Squares{many, Element::Value}, Storage::Alike);
}

struct Weighted {
  int64_t n;
  bool is_scaled = false;

  void operator()(Trial& run) const {
    const Tensor out = run.updated("out", {2}, Element::F64);
    run.compare("sum", slice(out, 0, 0, 1),
                {.reduction = n, .magnitude = std::sqrt(static_cast<double>(n))});
    run.compare("weights", slice(out, 0, 1, 1),
                {.reduction = n, .magnitude = std::sqrt(static_cast<double>(n))});
    ops::weighted_sum(run.ex(),
                      {.x = run.input("x", {n}, Element::Sum),
                       .weight = run.input("weight", {n}, Element::F32),
                       .scale = is_scaled ? run.input("scale", {1}, Element::F64) : Tensor{},
                       .out = out});
  }
};

// Fails when the weights are summed into the first entry, out is overwritten, or a scale changes
// only one of the sums.
TEST(Reduce, CpuWeightedSumAgrees) {
  for (const int64_t n : kReduceLengths)
    for (const bool is_scaled : {false, true})
      expect_cpu_agrees(label("n={} scaled={}", n, is_scaled), Weighted{n, is_scaled});
}

TEST(Reduce, CudaWeightedSumAgrees) {
  for (const int64_t n : kReduceLengths)
    for (const bool is_scaled : {false, true})
      expect_cuda_agrees(label("n={} scaled={}", n, is_scaled), Weighted{n, is_scaled});
  const int64_t many = 700001;
  expect_cuda_agrees(label("n={}", many), Weighted{many}, Storage::Alike);
}

// Squares beyond the range of f32. Fails when they are formed in f32: then a finite gradient has an
// infinite norm.
TEST(Reduce, CudaSquaresDoNotOverflow) {
  if (no_gpu()) return;
  Trial run({.kind = DeviceKind::Cuda, .storage = DType::f32, .exact_in = DType::f32});
  const std::vector<double> x{0x1p100, -0x1p100, 0x1p-100}, zero{0};
  const Tensor out = run.updated_given({1}, zero, Element::F64);
  ops::squared_norm(run.ex(), {.x = run.given({3}, x), .out = out});
  EXPECT_EQ(run.read(out)[0], 0x1p201);
}

// Sums of integers are exact. Fails when the reference itself loses an element or the old content.
TEST(Reduce, ReferenceSumsAreExact) {
  Trial run(TrialSpec{});
  const std::vector<double> x{3, -4, 5}, one{1}, two{10, 20}, weight{1, 0, 2};
  const Tensor norm = run.updated_given({1}, one, Element::F64);
  ops::squared_norm(run.ex(), {.x = run.given({3}, x), .out = norm});
  EXPECT_EQ(run.read(norm)[0], 51);
  const Tensor sums = run.updated_given({2}, two, Element::F64);
  ops::weighted_sum(
      run.ex(),
      {.x = run.given({3}, x), .weight = run.given({3}, weight, Element::F32), .out = sums});
  EXPECT_EQ(run.read(sums)[0], 23);
  EXPECT_EQ(run.read(sums)[1], 23);
  const std::vector<double> half{0.5};
  ops::weighted_sum(run.ex(), {.x = run.given({3}, x),
                               .weight = run.given({3}, weight, Element::F32),
                               .scale = run.given({1}, half, Element::F64),
                               .out = sums});
  EXPECT_EQ(run.read(sums)[0], 29.5);
  EXPECT_EQ(run.read(sums)[1], 24.5);
}

}  // namespace
}  // namespace bev::test
