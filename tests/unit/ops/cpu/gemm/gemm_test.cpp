#include "ops/cpu/gemm/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "device/thread_pool.h"

namespace bev::cpu {
namespace {

constexpr std::array<Isa, 3> kIsas{Isa::Portable, Isa::Avx2, Isa::Avx512};
constexpr double kEps = 0x1p-24, kEpsBf16 = 0x1p-9;  // half a unit in the last place of 1

std::vector<Isa> isas() {
  std::vector<Isa> all;
  std::copy_if(kIsas.begin(), kIsas.end(), std::back_inserter(all), is_supported);
  return all;
}

// A rows x columns matrix in f32 or bf16 with a gap after each row or column, starting one element
// past any alignment.
class Matrix {
 public:
  Matrix(int64_t rows, int64_t columns, DType dtype, bool by_columns = false)
      : rows_(rows), columns_(columns), dtype_(dtype), by_columns_(by_columns) {
    gap_ = (by_columns ? rows : columns) + 3;
    bytes_.resize(static_cast<size_t>(1 + gap_ * (by_columns ? columns : rows)) * size_of(dtype));
  }

  static Matrix random(int64_t rows, int64_t columns, DType dtype, bool by_columns, uint32_t seed) {
    Matrix x(rows, columns, dtype, by_columns);
    std::mt19937 generator(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) x.set(i, j, uniform(generator));
    }
    return x;
  }

  int64_t stride() const { return gap_; }
  DType dtype() const { return dtype_; }
  const std::vector<std::byte>& bytes() const { return bytes_; }
  void* data() { return bytes_.data() + size_of(dtype_); }
  const void* data() const { return bytes_.data() + size_of(dtype_); }

  float operator()(int64_t i, int64_t j) const {
    const int64_t at = by_columns_ ? j * gap_ + i : i * gap_ + j;
    return dtype_ == DType::f32 ? static_cast<const float*>(data())[at]
                                : static_cast<float>(static_cast<const bf16*>(data())[at]);
  }
  void set(int64_t i, int64_t j, float x) {
    const int64_t at = by_columns_ ? j * gap_ + i : i * gap_ + j;
    if (dtype_ == DType::f32) {
      static_cast<float*>(data())[at] = x;
    } else {
      static_cast<bf16*>(data())[at] = bf16(x);
    }
  }

  GemmOperand operand() const {
    return {data(), dtype_, by_columns_ ? 1 : gap_, by_columns_ ? gap_ : 1};
  }

 private:
  int64_t rows_, columns_, gap_;
  DType dtype_;
  bool by_columns_;
  std::vector<std::byte> bytes_;
};

double activation_of(Activation activation, double x) {
  switch (activation) {
    case Activation::GeluTanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::GeluErf: return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case Activation::Relu: return std::max(0.0, x);
    default: return std::max(0.0, x) * std::max(0.0, x);
  }
}

double slope_of(Activation activation, double x) {
  if (activation == Activation::Relu) return x > 0 ? 1 : 0;
  const double h = 1e-5;
  return (activation_of(activation, x + h) - activation_of(activation, x - h)) / (2 * h);
}

enum class FinishReason : uint8_t { None, Bias, Activate, BiasActivate, Backward };

struct Case {
  int64_t m = 1, n = 1, k = 1;
  bool a_by_columns = false, b_by_columns = false;
  DType a = DType::f32, b = DType::f32, c = DType::f32, bias = DType::f32;
  bool accumulate = false;
  FinishReason finish = FinishReason::None;
  Activation activation = Activation::GeluTanh;
  bool pre_activation = false, row_sums = false;
};

std::ostream& operator<<(std::ostream& out, const Case& x) {
  return out << x.m << " x " << x.n << " x " << x.k << " layouts " << x.a_by_columns
             << x.b_by_columns << " dtypes " << name_of(x.a) << ' ' << name_of(x.b) << ' '
             << name_of(x.c) << " accumulate " << x.accumulate << " finish "
             << static_cast<int>(x.finish) << ' ' << name_of_choice(x.activation);
}

// The operands of a case and what a product writes.
struct Problem {
  Case of;
  Matrix a, b, c, bias, pre, input;
  std::vector<float> row_sums;

  explicit Problem(const Case& x)
      : of(x),
        a(Matrix::random(x.m, x.k, x.a, x.a_by_columns, 1)),
        b(Matrix::random(x.k, x.n, x.b, x.b_by_columns, 2)),
        c(Matrix::random(x.m, x.n, x.c, false, 3)),
        bias(Matrix::random(1, x.n, x.bias, false, 4)),
        pre(x.m, x.n, x.c),
        input(Matrix::random(x.m, x.n, x.c, false, 5)),
        row_sums(static_cast<size_t>(x.m), 0.25f) {}

  bool has_bias() const {
    return of.finish == FinishReason::Bias || of.finish == FinishReason::BiasActivate;
  }
  bool activates() const {
    return of.finish == FinishReason::Activate || of.finish == FinishReason::BiasActivate;
  }

  Gemm gemm() {
    Gemm g{.m = of.m, .n = of.n, .k = of.k, .a = a.operand(), .b = b.operand()};
    g.c = c.data();
    g.c_dtype = of.c;
    g.c_stride = c.stride();
    g.accumulate = of.accumulate;
    if (has_bias()) g.bias = bias.data();
    g.bias_dtype = of.bias;
    g.activate = activates();
    g.activation = of.activation;
    if (of.pre_activation) g.pre_activation = pre.data();
    g.pre_activation_stride = pre.stride();
    if (of.finish == FinishReason::Backward) g.activation_input = input.data();
    g.activation_input_stride = input.stride();
    if (of.row_sums) g.row_sums = row_sums.data();
    return g;
  }
};

// The rounding of a sum of k products of numbers up to 1. Partial sums of random signs grow like
// sqrt(k), and so does the number of roundings that do not cancel.
double sum_bound(int64_t k) { return 4 * kEps * static_cast<double>(k + 4); }

// Element (i, j) of `after` against double arithmetic on the operands of `before`.
void check_element(const Problem& before, const Problem& after, int64_t i, int64_t j) {
  const Case& of = before.of;
  const double rounding = of.c == DType::f32 ? kEps : kEpsBf16;
  double x = of.accumulate ? before.c(i, j) : 0;
  for (int64_t p = 0; p < of.k; ++p) {
    x += static_cast<double>(before.a(i, p)) * static_cast<double>(before.b(p, j));
  }
  if (before.has_bias()) x += static_cast<double>(before.bias(0, j));
  const double bound = sum_bound(of.k) + 2 * rounding * std::abs(x);
  if (of.pre_activation) {
    ASSERT_NEAR(after.pre(i, j), x, bound) << of << " pre-activation at " << i << ", " << j;
  }
  double y = x, steepness = 1;
  if (before.activates()) {
    y = activation_of(of.activation, x);
    steepness = 1.2 + 2 * std::abs(x);
  } else if (of.finish == FinishReason::Backward) {
    const double slope = slope_of(of.activation, before.input(i, j));
    y = x * slope;
    steepness = std::abs(slope) + 1e-6 * std::abs(x) / bound;
  }
  ASSERT_NEAR(after.c(i, j), y, steepness * bound + 2 * rounding * std::abs(y))
      << of << " at " << i << ", " << j;
}

void check_row_sums(const Problem& before, const Problem& after) {
  for (int64_t i = 0; i < before.of.m; ++i) {
    double sum = 0.25;
    for (int64_t p = 0; p < before.of.k; ++p) sum += static_cast<double>(before.a(i, p));
    ASSERT_NEAR(after.row_sums[static_cast<size_t>(i)], sum, sum_bound(before.of.k)) << before.of;
  }
}

class GemmTest : public testing::Test {
 protected:
  static constexpr int kMaxThreads = 3;
  GemmTest()
      : workspace_(
            static_cast<std::byte*>(std::aligned_alloc(64, kMaxThreads * gemm_workspace_bytes())),
            &std::free) {}

  void run(ThreadPool& pool, const Gemm& g, Isa isa) { gemm(pool, workspace_.get(), g, isa); }

  // Every element when there are few, otherwise a sample.
  void check(const Case& of) {
    const Problem before(of);
    for (const Isa isa : isas()) {
      SCOPED_TRACE(name_of_choice(isa));
      Problem after = before;
      run(pool2_, after.gemm(), isa);
      const int64_t elements = of.m * of.n;
      const int64_t step = std::max<int64_t>(1, elements * of.k / 500'000) * 2 - 1;
      for (int64_t e = 0; e < elements; e += step) {
        check_element(before, after, e / of.n, e % of.n);
        if (HasFatalFailure()) return;
      }
      if (of.row_sums) check_row_sums(before, after);
      if (HasFatalFailure()) return;
    }
  }

  ThreadPool pool1_{1}, pool2_{2}, pool3_{3};
  std::unique_ptr<std::byte, void (*)(void*)> workspace_;
};

TEST_F(GemmTest, AwkwardSizesInAllLayouts) {
  const std::vector<int64_t> sizes{1, 2, 3, 7, 8, 9, 17, 47, 48, 49, 97};
  for (const int64_t m : sizes) {
    for (const int64_t n : sizes) {
      for (const int64_t k : {0, 1, 5, 31, 64}) {
        Case of{.m = m, .n = n, .k = k};
        of.a_by_columns = (m + n + k) % 2 != 0;
        of.b_by_columns = (m + n / 2 + k) % 2 != 0;
        of.accumulate = (m + k) % 3 == 0;
        of.row_sums = n % 2 != 0;
        check(of);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_F(GemmTest, BlocksOfDepthAndSections) {
  for (const bool columns : {false, true}) {
    // Several blocks of depth; more shared lanes than fit at once; more depth than fits at once.
    check({.m = 257, .n = 193, .k = 1031, .a_by_columns = columns, .row_sums = true});
    check({.m = 193, .n = 257, .k = 1031, .b_by_columns = columns, .row_sums = true});
    check({.m = 1601, .n = 1603, .k = 1200, .a_by_columns = columns, .row_sums = true});
    check({.m = 60, .n = 51, .k = 40'000, .b_by_columns = columns, .row_sums = true});
    check({.m = 530, .n = 540, .k = 5003, .accumulate = columns, .row_sums = true});
  }
}

TEST_F(GemmTest, MixedTypes) {
  const std::array<DType, 2> types{DType::f32, DType::bf16};
  for (const DType a : types) {
    for (const DType b : types) {
      for (const DType c : types) {
        for (int variant = 0; variant < 8; ++variant) {
          Case of{.m = 37, .n = 61, .k = variant < 4 ? 45 : 1100, .a = a, .b = b, .c = c};
          of.a_by_columns = variant % 2 != 0;
          of.b_by_columns = variant / 2 % 2 != 0;
          of.accumulate = variant % 3 == 0;
          of.row_sums = true;
          check(of);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
  // Sums over parts of k that do not fit beside each other.
  check({.m = 700, .n = 1900, .k = 1040, .c = DType::bf16});
  check({.m = 1900, .n = 700, .k = 1040, .c = DType::bf16, .row_sums = true});
}

TEST_F(GemmTest, Epilogues) {
  for (const FinishReason finish : {FinishReason::Bias, FinishReason::Activate,
                                    FinishReason::BiasActivate, FinishReason::Backward}) {
    for (const Activation activation :
         {Activation::GeluTanh, Activation::GeluErf, Activation::Relu, Activation::SquaredRelu}) {
      for (const DType c : {DType::f32, DType::bf16}) {
        for (int variant = 0; variant < 8; ++variant) {
          Case of{.m = 21, .n = 77, .k = variant < 4 ? 40 : 1100, .c = c};
          of.bias = variant % 2 != 0 ? c : DType::f32;
          of.accumulate = variant / 2 % 2 != 0;
          of.pre_activation = finish != FinishReason::Backward && variant % 2 == 0;
          of.finish = finish;
          of.activation = activation;
          check(of);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_F(GemmTest, NoResultDependsOnTheNumberOfThreads) {
  std::vector<Case> cases{{.m = 256, .n = 200, .k = 700, .row_sums = true},
                          {.m = 211, .n = 97, .k = 900, .a_by_columns = true, .row_sums = true},
                          {.m = 530, .n = 540, .k = 5003, .accumulate = true, .row_sums = true},
                          {.m = 60, .n = 51, .k = 40'000, .row_sums = true},
                          {.m = 700, .n = 1900, .k = 1040, .c = DType::bf16}};
  cases[0].finish = FinishReason::BiasActivate;
  cases[0].pre_activation = true;
  for (const Case& of : cases) {
    const Problem before(of);
    for (const Isa isa : isas()) {
      Problem expected = before;
      gemm_on_thread(workspace_.get(), expected.gemm(), isa);
      for (ThreadPool* pool : {&pool1_, &pool2_, &pool3_}) {
        Problem actual = before;
        run(*pool, actual.gemm(), isa);
        EXPECT_EQ(actual.c.bytes(), expected.c.bytes()) << of << ' ' << name_of_choice(isa);
        EXPECT_EQ(actual.pre.bytes(), expected.pre.bytes()) << of;
        EXPECT_EQ(actual.row_sums, expected.row_sums) << of;
      }
    }
  }
}

// The product with a shifted identity puts a stored pre-activation at another place of another tile
// and activates it there.
TEST_F(GemmTest, ActivationIsAFunctionOfTheStoredPreActivation) {
  for (const Isa isa : isas()) {
    for (const DType c : {DType::f32, DType::bf16}) {
      for (const Activation activation :
           {Activation::GeluTanh, Activation::GeluErf, Activation::Relu, Activation::SquaredRelu}) {
        Case of{.m = 19, .n = 101, .k = 64, .c = c, .finish = FinishReason::BiasActivate};
        of.activation = activation;
        of.pre_activation = true;
        Problem first(of);
        run(pool1_, first.gemm(), isa);

        const int64_t shift = 5;
        Matrix identity(of.n, of.n + shift, DType::f32), again(of.m, of.n + shift, c);
        for (int64_t j = 0; j < of.n; ++j) identity.set(j, j + shift, 1);
        Gemm g{.m = of.m, .n = of.n + shift, .k = of.n};
        g.a = first.pre.operand();
        g.b = identity.operand();
        g.c = again.data();
        g.c_dtype = c;
        g.c_stride = again.stride();
        g.activate = true;
        g.activation = activation;
        run(pool1_, g, isa);
        for (int64_t i = 0; i < of.m; ++i) {
          for (int64_t j = 0; j < of.n; ++j) {
            ASSERT_EQ(again(i, j + shift), first.c(i, j)) << name_of_choice(isa);
          }
        }
      }
    }
  }
}

TEST_F(GemmTest, LeavesTheGapsBetweenRowsAlone) {
  for (const Isa isa : isas()) {
    for (const DType c : {DType::f32, DType::bf16}) {
      Problem problem({.m = 13, .n = 53, .k = 600, .c = c});
      const std::vector<std::byte> before = problem.c.bytes();
      run(pool2_, problem.gemm(), isa);
      const std::vector<std::byte>& after = problem.c.bytes();
      const auto stride = static_cast<size_t>(problem.c.stride());
      for (size_t e = 0; e < after.size() / size_of(c); ++e) {
        if (e >= 1 && (e - 1) % stride < 53) continue;
        for (size_t b = e * size_of(c); b < (e + 1) * size_of(c); ++b) {
          ASSERT_EQ(after[b], before[b]) << e;
        }
      }
    }
  }
}

TEST_F(GemmTest, EmptyProducts) {
  for (const Isa isa : isas()) {
    Problem no_rows({.m = 0, .n = 5, .k = 5});
    run(pool2_, no_rows.gemm(), isa);
    Problem no_columns({.m = 5, .n = 0, .k = 7, .row_sums = true});
    const Problem before(no_columns.of);
    run(pool2_, no_columns.gemm(), isa);
    check_row_sums(before, no_columns);
  }
}

TEST_F(GemmTest, RefusesWhatItCannotCompute) {
  Problem problem({.m = 4, .n = 4, .k = 4});
  Gemm g = problem.gemm();
  g.a.col_stride = 2;
  EXPECT_THROW(run(pool1_, g, Isa::Portable), Error);
  g = problem.gemm();
  g.activate = true;
  g.activation = Activation::SwiGlu;
  EXPECT_THROW(run(pool1_, g, Isa::Portable), Error);
}

TEST(IsaTest, IsChosenByNameOrByTheMachine) {
  EXPECT_EQ(isa_from("portable"), Isa::Portable);
  EXPECT_TRUE(is_supported(isa_from("")));
  try {
    isa_from("sse9");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind, ErrorKind::Usage);
    EXPECT_NE(std::string(error.what()).find("portable"), std::string::npos);
  }
}

}  // namespace
}  // namespace bev::cpu
