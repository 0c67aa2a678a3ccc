// Every test names the fault that makes it fail.
#include "ops/norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/harness.h"
#include "support/tolerance.h"

namespace bev::test {
namespace {

// With few elements the gradient almost cancels unless eps holds it up; the bounds are relative.
double eps_for(int64_t width) { return width < 8 ? 0.1 : 1e-5; }

constexpr Draw kShifted{.scale = 1, .offset = 0.5};
constexpr Draw kWeight{.scale = 0.3, .offset = 1};

int64_t rows_of(const Shape& shape) { return shape.elements() / shape[shape.rank() - 1]; }
int64_t width_of(const Shape& shape) { return shape[shape.rank() - 1]; }

struct NormCase {
  NormKind kind;
  Shape shape;
  bool bias = false;

  int64_t rows() const { return rows_of(shape); }
  int64_t width() const { return width_of(shape); }
  bool centred() const { return kind == NormKind::LayerNorm; }
  Bound bound(int stores = 2) const {
    return {.reduction = width(), .ops = stores, .magnitude = 0.1};
  }
  std::string name() const {
    return label("{} {} bias={}", name_of_choice(kind), to_string(shape), bias);
  }
};

struct NormForward : NormCase {
  void operator()(Trial& run) const {
    ops::Norm args{.kind = kind,
                   .x = run.input("x", shape, Element::Value, kShifted),
                   .weight = run.input("weight", {width()}, Element::Value, kWeight),
                   .eps = eps_for(width()),
                   .y = run.output("y", shape, Element::Value, bound()),
                   .rstd = run.output("rstd", {rows()}, Element::Sum, bound())};
    if (centred()) args.mean = run.output("mean", {rows()}, Element::Sum, bound());
    if (bias) args.bias = run.input("bias", {width()});
    ops::norm(run.ex(), args);
  }
};

struct ResidualForward : NormCase {
  double probability = 0;

  void operator()(Trial& run) const {
    ops::ResidualNorm args{.residual = run.input("residual", shape, Element::Value, kShifted),
                           .delta = run.input("delta", shape),
                           .sum = run.output("sum", shape, Element::Value, {.ops = 1}),
                           .kind = kind,
                           .weight = run.input("weight", {width()}, Element::Value, kWeight),
                           .eps = eps_for(width()),
                           // Normalised after the sum was stored: one more rounding.
                           .y = run.output("y", shape, Element::Value, bound(3)),
                           .rstd = run.blank({rows()}, Element::Sum)};
    args.dropout = {.probability = probability, .key = 99, .column_begin = 6};
    if (probability > 0) args.dropout.rows = logical_rows(run, rows());
    if (centred()) args.mean = run.blank({rows()}, Element::Sum);
    if (bias) args.bias = run.input("bias", {width()});
    ops::residual_norm(run.ex(), args);
    // The statistics of a sum rounded to bf16 are compared in storage precision, through y.
    if (run.spec().exact_in == DType::f32) {
      run.compare("rstd", args.rstd, bound());
      if (centred()) run.compare("mean", args.mean, bound());
    }
  }
};

enum class NormInPlace : uint8_t { No, OverDy, OverResidual };

struct NormBackward : NormCase {
  bool residual = false;
  NormInPlace in_place = NormInPlace::No;
  bool sums = false;

  // mean and rstd as a forward would have left them.
  void read_statistics(Trial& run, ops::NormBackward& args) const {
    Trial truth = run.truth();
    ops::Norm forward{.kind = kind,
                      .x = truth.input("x", shape, Element::Value, kShifted),
                      .weight = truth.input("weight", {width()}, Element::Value, kWeight),
                      .eps = eps_for(width()),
                      .y = truth.blank(shape),
                      .rstd = truth.blank({rows()})};
    if (centred()) forward.mean = truth.blank({rows()});
    ops::norm(truth.ex(), forward);
    args.rstd = run.given({rows()}, truth.read(forward.rstd), Element::Sum);
    if (centred()) args.mean = run.given({rows()}, truth.read(forward.mean), Element::Sum);
  }

  void operator()(Trial& run) const {
    ops::NormBackward args;
    args.kind = kind;
    args.x = run.input("x", shape, Element::Value, kShifted);
    args.weight = run.input("weight", {width()}, Element::Value, kWeight);
    read_statistics(run, args);
    if (in_place == NormInPlace::OverDy) {
      args.dx = run.updated("dy", shape);
      args.dy = args.dx;
    } else {
      args.dy = run.input("dy", shape);
    }
    if (in_place == NormInPlace::OverResidual) {
      args.dx = run.updated("dresidual", shape);
      args.dresidual = args.dx;
    } else if (residual) {
      args.dresidual = run.input("dresidual", shape);
    }
    if (in_place == NormInPlace::No) args.dx = run.blank(shape);
    args.dweight = run.updated("dweight", {width()}, Element::Sum);
    const Bound over_rows{
        .reduction = rows(), .ops = 2, .magnitude = std::sqrt(static_cast<double>(rows()))};
    // Terms of size rstd * g, which is about 1, cancel; all of them where width is 1.
    run.compare("dx", args.dx, {.reduction = width(), .ops = 2, .magnitude = 1});
    run.compare("dweight", args.dweight, over_rows);
    if (bias) {
      args.dbias = run.updated("dbias", {width()}, Element::Sum);
      run.compare("dbias", args.dbias, over_rows);
    }
    if (sums) {
      args.dx_sums = run.updated("dx_sums", {width()}, Element::Sum);
      // dx may have been rounded before it was summed.
      Bound bound = over_rows;
      const DType stored = run.spec().exact_in;
      bound.magnitude =
          std::max(bound.magnitude, unit_roundoff(stored) / unit_roundoff(accumulation_of(stored)));
      run.compare("dx_sums", args.dx_sums, bound);
    }
    ops::norm_backward(run.ex(), args);
  }
};

std::vector<NormCase> norm_cases() {
  std::vector<NormCase> all;
  const std::vector<Shape> shapes{{1, 1},      {3, 2},
                                  {0, 5},      {5, 3},
                                  {2, 7},      {9, 8},
                                  {4, 9},      {17, 15},
                                  {3, 16},     {8, 17},
                                  {33, 31},    {2, 33},
                                  {65, 63},    {7, 64},
                                  {64, 65},    {3, 257},
                                  {150, 40},   {4, 3, 8},
                                  {5, 2, 17},  {0, 2, 8},
                                  {1, 1, 33},  {kSharedRows, kSharedWidth},
                                  {97, 5, 128}};
  for (const Shape& shape : shapes) {
    all.push_back({NormKind::LayerNorm, shape, false});
    all.push_back({NormKind::LayerNorm, shape, true});
    all.push_back({NormKind::RmsNorm, shape, false});
  }
  return all;
}

// Widths of models, one for each number of threads that share a row on a GPU, with enough rows that
// a team takes several; heads in the view of a fused row.
std::vector<NormCase> norm_large_cases() {
  std::vector<NormCase> all;
  const std::vector<Shape> shapes{{4300, 264},   {3300, 768}, {3, 769},    {2200, 1024},
                                  {701, 1280},   {99, 1600},  {531, 2048}, {401, 2560},
                                  {267, 4096},   {265, 8192}, {3, 12288},  {4300, 3, 64},
                                  {1301, 5, 128}};
  for (const Shape& shape : shapes) {
    all.push_back({NormKind::LayerNorm, shape, true});
    all.push_back({NormKind::RmsNorm, shape, false});
  }
  return all;
}

// A token of each of a few texts, as generation has them.
std::vector<NormCase> few_row_cases() {
  std::vector<NormCase> all;
  for (const Shape& shape : {Shape{1, 768}, Shape{16, 768}, Shape{3, 1024}, Shape{2, 1032},
                             Shape{1, 1600}, Shape{5, 2048}, Shape{2, 2560}, Shape{3, 4096},
                             Shape{64, 1280}, Shape{2, 4104}, Shape{2, 8192}}) {
    all.push_back({NormKind::LayerNorm, shape, true});
    all.push_back({NormKind::LayerNorm, shape, false});
    all.push_back({NormKind::RmsNorm, shape, false});
  }
  return all;
}

// Fails when eps is left out, the variance is divided by width - 1, the tail of a row is skipped,
// or the heads of a strided view are read as if they were adjacent.
TEST(Norm, CpuForwardAgrees) {
  for (const NormCase& c : norm_cases()) expect_cpu_agrees(c.name(), NormForward{c});
}

// Fails when dropout hits the residual instead of delta, or column_begin is ignored.
TEST(Norm, CpuResidualForwardAgrees) {
  for (const NormCase& c : norm_cases()) {
    if (c.shape.rank() != 2) continue;
    for (const double probability : {0.0, 0.3}) {
      expect_cpu_agrees(c.name() + label(" dropout={}", probability),
                        ResidualForward{c, probability});
    }
  }
}

// Fails when dweight is overwritten, when the sums over rows depend on how threads share the rows,
// when RmsNorm subtracts mean(g), or when dx is summed before another thread has written it.
TEST(Norm, CpuBackwardAgrees) {
  for (const NormCase& c : norm_cases()) {
    const bool residual = c.shape.rank() == 2;
    expect_cpu_agrees(c.name(), NormBackward{c});
    if (residual) expect_cpu_agrees(c.name() + " residual", NormBackward{c, true});
    expect_cpu_agrees(c.name() + " sums", NormBackward{c, residual, NormInPlace::No, true});
  }
}

// Rows that several threads share in more than one block. Fails when a block's dx is left out of
// the sums.
TEST(Norm, CpuBackwardAgreesOverManyBlocks) {
  const NormCase c{NormKind::LayerNorm, {601, 2055}, true};
  expect_cpu_agrees(c.name(), NormBackward{c, true, NormInPlace::No, true});
}

// Fails when dx is stored before the row's sums over dy are complete.
TEST(Norm, CpuBackwardAgreesInPlace) {
  for (const NormKind kind : {NormKind::LayerNorm, NormKind::RmsNorm}) {
    for (const Shape& shape : {Shape{21, 9}, Shape{70, 64}, Shape{kSharedRows, kSharedWidth}}) {
      const NormCase c{kind, shape, false};
      expect_cpu_agrees(c.name() + " over dy", NormBackward{c, false, NormInPlace::OverDy});
      expect_cpu_agrees(c.name() + " over dy, residual",
                        NormBackward{c, true, NormInPlace::OverDy});
      expect_cpu_agrees(c.name() + " over dresidual",
                        NormBackward{c, true, NormInPlace::OverResidual});
      expect_cpu_agrees(c.name() + " over dy, sums",
                        NormBackward{c, true, NormInPlace::OverDy, true});
    }
  }
}

TEST(Norm, CudaForwardAgrees) {
  for (const NormCase& c : norm_cases()) expect_cuda_agrees(c.name(), NormForward{c});
  for (const NormCase& c : norm_large_cases()) {
    expect_cuda_agrees(c.name(), NormForward{c}, Storage::Alike);
  }
}

TEST(Norm, CudaResidualForwardAgrees) {
  for (const NormCase& c : norm_cases()) {
    if (c.shape.rank() != 2) continue;
    for (const double probability : {0.0, 0.3}) {
      expect_cuda_agrees(c.name() + label(" dropout={}", probability),
                         ResidualForward{c, probability});
    }
  }
  for (const NormCase& c : norm_large_cases()) {
    if (c.shape.rank() != 2) continue;
    expect_cuda_agrees(c.name(), ResidualForward{c, 0.1}, Storage::Alike);
  }
}

// Fails when a row has more groups than its block has threads, or a thread without a group counts.
TEST(Norm, CudaAgreesOverFewRows) {
  for (const NormCase& c : few_row_cases()) {
    expect_cuda_agrees(c.name(), NormForward{c});
    expect_cuda_agrees(c.name() + " residual", ResidualForward{c, 0.0});
  }
}

// Fails when a block forgets the rows of another team, or the second stage a part.
TEST(Norm, CudaBackwardAgrees) {
  for (const NormCase& c : norm_cases()) {
    const bool residual = c.shape.rank() == 2;
    expect_cuda_agrees(c.name(), NormBackward{c});
    if (residual) expect_cuda_agrees(c.name() + " residual", NormBackward{c, true});
    expect_cuda_agrees(c.name() + " sums", NormBackward{c, residual, NormInPlace::No, true});
  }
  for (const NormCase& c : norm_large_cases()) {
    const bool residual = c.shape.rank() == 2;
    expect_cuda_agrees(c.name(), NormBackward{c, residual}, Storage::Alike);
    expect_cuda_agrees(c.name() + " sums", NormBackward{c, residual, NormInPlace::No, true},
                       Storage::Alike);
  }
}

TEST(Norm, CudaBackwardAgreesInPlace) {
  for (const NormKind kind : {NormKind::LayerNorm, NormKind::RmsNorm}) {
    for (const Shape& shape : {Shape{21, 9}, Shape{70, 64}, Shape{kSharedRows, kSharedWidth},
                               Shape{97, 768}, Shape{9, 4096}}) {
      const NormCase c{kind, shape, false};
      expect_cuda_agrees(c.name() + " over dy", NormBackward{c, false, NormInPlace::OverDy});
      expect_cuda_agrees(c.name() + " over dy, residual",
                         NormBackward{c, true, NormInPlace::OverDy});
      expect_cuda_agrees(c.name() + " over dresidual",
                         NormBackward{c, true, NormInPlace::OverResidual});
      expect_cuda_agrees(c.name() + " over dy, sums",
                         NormBackward{c, true, NormInPlace::OverDy, true});
    }
  }
}

// More than four rows for every team of a GPU with 132 multiprocessors. Fails when a row is copied
// over one that is still in use, or after its dx has been written.
TEST(Norm, CudaBackwardAgreesOverManyRows) {
  for (const NormCase& c : {NormCase{NormKind::LayerNorm, {6700, 768}, true},
                            NormCase{NormKind::RmsNorm, {1100, 4096}, false},
                            NormCase{NormKind::LayerNorm, {17000, 3, 64}, true}}) {
    expect_cuda_agrees(c.name(), NormBackward{c, c.shape.rank() == 2, NormInPlace::OverDy, true},
                       Storage::Alike);
  }
}

// Fails when mean(g) or the term with xhat is left out of dx, or dresidual is not added.
TEST(Norm, GradientsMatchDifferences) {
  for (const Shape& shape : {Shape{5, 7}, Shape{3, 2, 6}}) {
    for (const NormKind kind : {NormKind::LayerNorm, NormKind::RmsNorm}) {
      const NormCase c{kind, shape, kind == NormKind::LayerNorm};
      SCOPED_TRACE(c.name());
      Trial run(gradient_run());
      const Tensor x = run.updated("x", shape);
      const Tensor weight = run.updated("weight", {c.width()}, Element::Value, kWeight);
      ops::Norm forward{.kind = kind,
                        .x = x,
                        .weight = weight,
                        .y = run.blank(shape),
                        .rstd = run.blank({c.rows()})};
      const std::vector<double> zeros(static_cast<size_t>(c.width()), 0.0);
      ops::NormBackward backward{.kind = kind,
                                 .dy = run.input("dy", shape),
                                 .x = x,
                                 .weight = weight,
                                 .rstd = forward.rstd,
                                 .dx = run.blank(shape),
                                 .dweight = run.updated_given({c.width()}, zeros)};
      const Tensor bias = run.updated("bias", {c.width()});
      if (c.centred()) {
        forward.bias = bias;
        forward.mean = run.blank({c.rows()});
        backward.mean = forward.mean;
        backward.dbias = run.updated_given({c.width()}, zeros);
      }
      // The residual branch: loss = sum(dy * norm(x)) + sum(dresidual * x).
      const ConstTensor dresidual = run.input("dresidual", shape);
      if (shape.rank() == 2) backward.dresidual = dresidual;
      const auto loss = [&] {
        ops::norm(run.ex(), forward);
        const double direct = shape.rank() == 2 ? inner(dresidual, x) : 0;
        return inner(backward.dy, forward.y) + direct;
      };
      loss();
      ops::norm_backward(run.ex(), backward);
      expect_gradient("x", x, backward.dx, loss);
      expect_gradient("weight", weight, backward.dweight, loss);
      if (c.centred()) expect_gradient("bias", bias, backward.dbias, loss);
    }
  }
}

// The gradient of the fused op is made of norm_backward and dropout.
// Fails when forward and backward draw different masks.
TEST(Norm, ResidualNormGradientsMatchDifferences) {
  for (const double probability : {0.0, 0.4}) {
    Trial run(gradient_run());
    const Shape shape{4, 6};
    const Tensor residual = run.updated("residual", shape), delta = run.updated("delta", shape);
    const ConstTensor weight = run.input("weight", {6}), dy = run.input("dy", shape);
    const ops::Dropout dropout{
        .probability = probability, .key = 5, .rows = logical_rows(run, 4), .column_begin = 3};
    const ops::ResidualNorm forward{.residual = residual,
                                    .delta = delta,
                                    .dropout = dropout,
                                    .sum = run.blank(shape),
                                    .kind = NormKind::RmsNorm,
                                    .weight = weight,
                                    .y = run.blank(shape),
                                    .rstd = run.blank({4})};
    const auto loss = [&] {
      ops::residual_norm(run.ex(), forward);
      return inner(dy, forward.y);
    };
    loss();
    const Tensor dresidual = run.blank(shape), ddelta = run.blank(shape);
    ops::norm_backward(run.ex(), {.kind = NormKind::RmsNorm,
                                  .dy = dy,
                                  .x = forward.sum,
                                  .weight = weight,
                                  .rstd = forward.rstd,
                                  .dx = dresidual,
                                  .dweight = run.updated("dweight", {6})});
    ops::dropout(run.ex(), {.x = dresidual, .dropout = dropout, .y = ddelta});
    expect_gradient("residual", residual, dresidual, loss);
    expect_gradient("delta", delta, ddelta, loss);
  }
}

// Fails when y is not centred or not scaled to variance 1, whatever the backward says.
TEST(Norm, RowsHaveMeanZeroAndVarianceOne) {
  Trial run(TrialSpec{});
  const int64_t width = 50;
  const std::vector<double> ones(static_cast<size_t>(width), 1.0);
  const Tensor y = run.blank({3, width});
  ops::norm(run.ex(), {.kind = NormKind::LayerNorm,
                       .x = run.input("x", {3, width}, Element::Value, {.scale = 7, .offset = -4}),
                       .weight = run.given({width}, ones),
                       .eps = 0,
                       .y = y,
                       .mean = run.blank({3}),
                       .rstd = run.blank({3})});
  const std::vector<double> values = run.read(y);
  for (size_t row = 0; row < 3; ++row) {
    double sum = 0, squares = 0;
    for (size_t c = 0; c < 50; ++c) {
      const double value = values[row * 50 + c];
      sum += value;
      squares += value * value;
    }
    EXPECT_NEAR(sum / 50, 0, 1e-14);
    EXPECT_NEAR(squares / 50, 1, 1e-14);
  }
}

}  // namespace
}  // namespace bev::test
