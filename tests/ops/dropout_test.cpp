// Every test names the fault that makes it fail.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/philox.h"
#include "ops/elementwise.h"
#include "ops/harness.h"

namespace bev::test {
namespace {

ops::Dropout draws(Trial& run, int64_t rows, double probability, int64_t column_begin = 0) {
  ops::Dropout dropout{.probability = probability, .key = 1234, .column_begin = column_begin};
  if (probability > 0) dropout.rows = logical_rows(run, rows);
  return dropout;
}

struct Apply {
  int64_t rows, width;
  double probability;
  int64_t column_begin = 0;
  bool in_place = false;

  std::string name() const {
    return label("rows={} width={} p={} column_begin={} in_place={}", rows, width, probability,
                 column_begin, in_place);
  }
  void operator()(Trial& run) const {
    const Shape shape{rows, width};
    ops::DropoutApply args;
    args.dropout = draws(run, rows, probability, column_begin);
    args.y = in_place ? run.updated("x", shape) : run.blank(shape);
    args.x = in_place ? ConstTensor(args.y) : run.input("x", shape);
    run.compare("y", args.y);
    ops::dropout(run.ex(), args);
  }
};

enum class DropoutInPlace : uint8_t { No, OverResidual, OverDelta };

struct Add {
  int64_t rows, width;
  double probability;
  DropoutInPlace in_place = DropoutInPlace::No;

  std::string name() const {
    return label("rows={} width={} p={} in_place={}", rows, width, probability,
                 static_cast<int>(in_place));
  }
  void operator()(Trial& run) const {
    const Shape shape{rows, width};
    ops::ResidualAdd args;
    args.dropout = draws(run, rows, probability, 2);
    if (in_place == DropoutInPlace::No) args.out = run.blank(shape);
    if (in_place == DropoutInPlace::OverResidual) {
      args.out = run.updated("residual", shape);
      args.residual = args.out;
    } else {
      args.residual = run.input("residual", shape);
    }
    if (in_place == DropoutInPlace::OverDelta) {
      args.out = run.updated("delta", shape);
      args.delta = args.out;
    } else {
      args.delta = run.input("delta", shape);
    }
    run.compare("out", args.out);
    ops::residual_add(run.ex(), args);
  }
};

const std::vector<std::pair<int64_t, int64_t>> kDropoutSizes{
    {1, 1}, {0, 7},  {3, 3},  {2, 4},  {5, 7},  {4, 8},
    {3, 9}, {2, 17}, {9, 31}, {3, 33}, {2, 65}, {kSharedRows, kSharedWidth}};

// Fails when a word of the block is used for the wrong column (column_begin not a multiple of 4),
// or the kept values are not scaled.
TEST(Dropout, CpuAgrees) {
  for (const auto& [rows, width] : kDropoutSizes) {
    for (const double probability : {0.0, 0.1, 0.7}) {
      for (const int64_t column_begin : {0, 1, 6, 64}) {
        const Apply c{rows, width, probability, column_begin};
        expect_cpu_agrees(c.name(), c);
      }
      const Apply over{rows, width, probability, 3, true};
      expect_cpu_agrees(over.name(), over);
    }
  }
}

// Fails when the residual is dropped with delta, or read after it was overwritten.
TEST(Dropout, CpuResidualAddAgrees) {
  for (const auto& [rows, width] : kDropoutSizes) {
    for (const double probability : {0.0, 0.3}) {
      for (const DropoutInPlace in_place :
           {DropoutInPlace::No, DropoutInPlace::OverResidual, DropoutInPlace::OverDelta}) {
        const Add c{rows, width, probability, in_place};
        expect_cpu_agrees(c.name(), c);
      }
    }
  }
}

const std::vector<std::pair<int64_t, int64_t>> kDropoutLargeSizes{
    {700, 768}, {3, 769}, {33, 1600}, {5, 4096}, {2, 8192}, {1, 50257}};

TEST(Dropout, CudaAgrees) {
  for (const auto& [rows, width] : kDropoutSizes) {
    for (const double probability : {0.0, 0.1, 0.7}) {
      for (const int64_t column_begin : {0, 1, 6, 64}) {
        const Apply c{rows, width, probability, column_begin};
        expect_cuda_agrees(c.name(), c);
      }
      const Apply over{rows, width, probability, 3, true};
      expect_cuda_agrees(over.name(), over);
    }
  }
  for (const auto& [rows, width] : kDropoutLargeSizes) {
    const Apply c{rows, width, 0.1, 2};
    expect_cuda_agrees(c.name(), c, Storage::Alike);
  }
}

TEST(Dropout, CudaResidualAddAgrees) {
  for (const auto& [rows, width] : kDropoutSizes) {
    for (const double probability : {0.0, 0.3}) {
      for (const DropoutInPlace in_place :
           {DropoutInPlace::No, DropoutInPlace::OverResidual, DropoutInPlace::OverDelta}) {
        const Add c{rows, width, probability, in_place};
        expect_cuda_agrees(c.name(), c);
      }
    }
  }
  for (const auto& [rows, width] : kDropoutLargeSizes) {
    const Add c{rows, width, 0.1};
    expect_cuda_agrees(c.name(), c, Storage::Alike);
  }
}

// dropout(ones) of `rows` logical rows from row_begin, columns from column_begin.
std::vector<double> mask(DeviceKind kind, int64_t row_begin, int64_t rows, int64_t column_begin,
                         int64_t width, double probability, uint64_t key = 7,
                         DType short_type = DType::f32) {
  const DType dtype = kind == DeviceKind::Reference ? DType::f64 : short_type;
  Trial run({.kind = kind, .threads = 2, .storage = dtype, .exact_in = dtype});
  std::vector<int64_t> logical(static_cast<size_t>(rows));
  std::iota(logical.begin(), logical.end(), row_begin);
  const std::vector<double> ones(static_cast<size_t>(rows * width), 1.0);
  const Tensor y = run.blank({rows, width});
  ops::dropout(run.ex(), {.x = run.given({rows, width}, ones),
                          .dropout = {.probability = probability,
                                      .key = key,
                                      .rows = run.integers({rows}, DType::i64, logical),
                                      .column_begin = column_begin},
                          .y = y});
  return run.read(y);
}

// Any cut into rows and columns gives the same mask. Fails when a draw uses the local row or
// column.
void expect_independent_of_cut(DeviceKind kind) {
  const int64_t rows = 11, width = 37;
  const std::vector<double> whole = mask(kind, 100, rows, 0, width, 0.4);
  for (const int64_t row_cut : {1, 6}) {
    for (const int64_t column_cut : {5, 16}) {
      for (const bool lower : {false, true}) {
        for (const bool right : {false, true}) {
          const int64_t r0 = lower ? row_cut : 0, r1 = lower ? rows : row_cut;
          const int64_t c0 = right ? column_cut : 0, c1 = right ? width : column_cut;
          const auto part = mask(kind, 100 + r0, r1 - r0, c0, c1 - c0, 0.4);
          size_t next = 0;
          for (int64_t r = r0; r < r1; ++r) {
            for (int64_t c = c0; c < c1; ++c) {
              EXPECT_EQ(part[next++], whole[static_cast<size_t>(r * width + c)]);
            }
          }
        }
      }
    }
  }
}

TEST(Dropout, MaskDoesNotDependOnCut) { expect_independent_of_cut(DeviceKind::Reference); }
TEST(Dropout, CpuMaskDoesNotDependOnCut) { expect_independent_of_cut(DeviceKind::Cpu); }
TEST(Dropout, CudaMaskDoesNotDependOnCut) {
  if (no_gpu()) return;
  expect_independent_of_cut(DeviceKind::Cuda);
}

// Every element is kept or dropped as the reference does, in every type. Fails when a draw goes to
// the neighbouring column, or the threshold is compared in another type.
TEST(Dropout, CudaDrawsTheMaskOfTheReference) {
  if (no_gpu()) return;
  for (const double probability : {0.1, 0.5, 0.9}) {
    for (const int64_t column_begin : {0, 1, 2, 3, 768}) {
      for (const int64_t width : {1024, 1025}) {
        const auto expected =
            mask(DeviceKind::Reference, 1000, 37, column_begin, width, probability);
        for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
          SCOPED_TRACE(label("p={} column_begin={} width={} {}", probability, column_begin, width,
                             name_of(dtype)));
          const auto found =
              mask(DeviceKind::Cuda, 1000, 37, column_begin, width, probability, 7, dtype);
          size_t different = 0;
          for (size_t i = 0; i < expected.size(); ++i) {
            different += (expected[i] == 0) != (found[i] == 0) ? 1 : 0;
          }
          EXPECT_EQ(different, 0u);
        }
      }
    }
  }
}

// The fraction kept is within five standard deviations of 1 - p and the mean of ones stays 1.
// Fails when the comparison with the threshold is turned round, or the scale is 1 / p.
TEST(Dropout, KeepsTheRightFraction) {
  for (const double probability : {0.1, 0.5, 0.9}) {
    const int64_t rows = 100, width = 400;
    const auto values = mask(DeviceKind::Reference, 0, rows, 0, width, probability);
    const auto count = static_cast<double>(rows * width);
    double kept = 0, sum = 0;
    for (const double value : values) {
      kept += value != 0 ? 1 : 0;
      sum += value;
    }
    const double deviation = std::sqrt(probability * (1 - probability) / count);
    EXPECT_NEAR(kept / count, 1 - probability, 5 * deviation);
    EXPECT_NEAR(sum / count, 1, 5 * deviation / (1 - probability));
  }
}

// The draw as the contract writes it. Fails when key, row or column enter philox differently: then
// two builds would draw different masks for one checkpoint.
TEST(Dropout, DrawsWhatTheContractSays) {
  const auto values = mask(DeviceKind::Reference, 12, 1, 5, 6, 0.5, 42);
  for (uint64_t c = 0; c < 6; ++c) {
    const uint64_t column = 5 + c;
    const bool dropped = philox(42, 12, column / 4)[column % 4] < 0x80000000u;
    EXPECT_EQ(values[c], dropped ? 0 : 2);
  }
}

// Different keys are different masks. Fails when the key is ignored.
TEST(Dropout, MaskDependsOnKey) {
  EXPECT_NE(mask(DeviceKind::Reference, 0, 4, 0, 16, 0.5, 1),
            mask(DeviceKind::Reference, 0, 4, 0, 16, 0.5, 2));
}

// The backward is the op itself. Fails when the mask depends on the values or on the call.
TEST(Dropout, GradientsMatchDifferences) {
  Trial run(gradient_run());
  const Shape shape{5, 9};
  const Tensor residual = run.updated("residual", shape), delta = run.updated("delta", shape);
  const ConstTensor dout = run.input("dout", shape);
  const Tensor out = run.blank(shape), ddelta = run.blank(shape);
  const ops::Dropout dropout = draws(run, 5, 0.4, 3);
  ops::dropout(run.ex(), {.x = dout, .dropout = dropout, .y = ddelta});
  const auto loss = [&] {
    ops::residual_add(run.ex(),
                      {.residual = residual, .delta = delta, .dropout = dropout, .out = out});
    return inner(dout, out);
  };
  expect_gradient("delta", delta, ddelta, loss);
  expect_gradient("residual", residual, dout, loss);
}

}  // namespace
}  // namespace bev::test
