#include "ops/cpu/kernels/kernels.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/philox.h"

namespace bev::cpu {
namespace {

constexpr std::array<Isa, 3> kKernelIsas{Isa::Portable, Isa::Avx2, Isa::Avx512};
constexpr std::array<Activation, 7> kActivations{
    Activation::GeluTanh, Activation::GeluErf,   Activation::Relu,    Activation::SquaredRelu,
    Activation::SwiGlu,   Activation::GeGluTanh, Activation::GeGluErf};

// Calls body(kernels) for every instruction set of this machine.
template <class Body>
void each_isa(const Body& body) {
  for (const Isa isa : kKernelIsas) {
    if (!is_supported(isa)) continue;
    SCOPED_TRACE(std::string(name_of_choice(isa)));
    body(kernels(isa));
  }
}

std::vector<float> normals(int64_t count, uint64_t key) {
  std::vector<float> values;
  values.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(normals_of(philox(key, 0, static_cast<uint64_t>(i)))[0]);
  }
  return values;
}

// Fails when a partial vector is computed by other code than a whole one: recomputation cuts rows
// elsewhere and must give the same bits.
TEST(CpuKernels, ElementsDoNotDependOnTheirPlace) {
  constexpr int64_t kCount = 75;
  const std::vector<float> x = normals(kCount, 1), up = normals(kCount, 2);
  each_isa([&](const Kernels& k) {
    for (const Activation activation : kActivations) {
      const float* gate_up = is_gated(activation) ? up.data() : nullptr;
      std::vector<float> whole(kCount), pieces(kCount);
      k.f32.activate(activation, x.data(), gate_up, whole.data(), kCount);
      for (int64_t begin = 0, length = 1; begin < kCount; begin += length, ++length) {
        const int64_t count = std::min(length, kCount - begin);
        k.f32.activate(activation, x.data() + begin, gate_up ? gate_up + begin : nullptr,
                       pieces.data() + begin, count);
      }
      EXPECT_EQ(whole, pieces) << name_of_choice(activation);
    }
  });
}

// Fails when the lanes of a vector take their words in another order than the columns, or a cut at
// a column that is not a multiple of 4 shifts the draws.
TEST(CpuKernels, DropoutDrawsByColumn) {
  constexpr int64_t kCount = 300;
  const std::vector<float> x = normals(kCount, 3), residual = normals(kCount, 4);
  each_isa([&](const Kernels& k) {
    for (const int64_t column : {0, 1, 2, 3, 7, 64, 1001}) {
      for (const int64_t count : {1, 5, 16, 31, 64, 127, 128, 129, 300}) {
        DropoutDraws draws{.key = 0x123456789ABCDEF0,
                           .row = (uint64_t{7} << 32) + 5,
                           .column = column,
                           .threshold = 1u << 30,
                           .scale = 4.0f / 3};
        std::vector<float> y(static_cast<size_t>(count)), expected;
        k.f32.dropout(x.data(), residual.data(), y.data(), count, draws);
        for (int64_t i = 0; i < count; ++i) {
          const auto c = static_cast<uint64_t>(column + i);
          const bool kept = philox(draws.key, draws.row, c / 4)[c % 4] >= draws.threshold;
          const auto at = static_cast<size_t>(i);
          const float dropped = kept ? x[at] * draws.scale : 0.0f;
          expected.push_back(residual[at] + dropped);
        }
        EXPECT_EQ(y, expected) << "column " << column << ", count " << count;
      }
    }
  });
}

// Fails when a dropped infinity or NaN leaves a NaN behind.
TEST(CpuKernels, DropoutRemovesWhatIsNotFinite) {
  const std::vector<float> x(64, std::numeric_limits<float>::infinity());
  each_isa([&](const Kernels& k) {
    std::vector<float> y(x.size());
    k.f32.dropout(x.data(), nullptr, y.data(), 64,
                  {.key = 1, .row = 2, .column = 0, .threshold = 1u << 31, .scale = 2});
    for (const float v : y) EXPECT_FALSE(std::isnan(v));
  });
}

// Fails when the maximum of one block is not carried to the next, or lanes beyond the row take
// part.
TEST(CpuKernels, SoftmaxSumsOfLongRows) {
  each_isa([&](const Kernels& k) {
    for (const int64_t columns : {1, 3, 17, 2047, 2048, 2049, 5000}) {
      std::vector<float> x = normals(columns, 5);
      for (float& v : x) v -= 40;
      x[static_cast<size_t>(columns / 2)] = -20;
      const SoftmaxSums sums = k.f32.softmax_sums(x.data(), columns);
      float max = x[0];
      double sum_exp = 0, sum = 0;
      for (const float v : x) max = std::max(max, v);
      for (const float v : x) {
        sum_exp += std::exp(static_cast<double>(v) - static_cast<double>(max));
        sum += static_cast<double>(v);
      }
      EXPECT_EQ(sums.max, max);
      EXPECT_NEAR(sums.sum_exp / sum_exp, 1, 1e-6) << columns;
      EXPECT_NEAR(sums.sum / sum, 1, 1e-6) << columns;
    }
  });
}

// Fails when a NaN among the logits is lost in the maximum: the step would be applied.
TEST(CpuKernels, SoftmaxSumsKeepNan) {
  each_isa([&](const Kernels& k) {
    for (const int64_t columns : {1, 20, 3000}) {
      std::vector<float> x = normals(columns, 6);
      x.back() = std::numeric_limits<float>::quiet_NaN();
      EXPECT_TRUE(std::isnan(k.f32.softmax_sums(x.data(), columns).sum_exp)) << columns;
    }
  });
}

// Fails when squares are formed in f32, where the largest gradients overflow.
TEST(CpuKernels, SquaresAreSummedInDouble) {
  each_isa([&](const Kernels& k) {
    for (const int64_t count : {0, 1, 15, 16, 17, 100}) {
      const std::vector<float> x(static_cast<size_t>(count), 3e38f);
      const double square = static_cast<double>(3e38f) * static_cast<double>(3e38f);
      EXPECT_DOUBLE_EQ(k.f32.sum_of_squares(x.data(), count), static_cast<double>(count) * square);
    }
  });
}

}  // namespace
}  // namespace bev::cpu
