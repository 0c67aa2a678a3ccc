// Layouts of ranks that share a GPU train what one rank trains there, as far as the arithmetic
// allows. Fails when ranks read what is not written yet, sum it in another order than agreed, or
// forget a part of it.
#include <gtest/gtest.h>

#include <cmath>

#include "equivalence/layout_bounds.h"
#include "equivalence/layout_cases.h"
#include "ops/make_device.h"
#include "verify/run_comparison.h"

namespace bev::test {
namespace {

constexpr int kCudaSteps = 3;

class CudaLayouts : public ::testing::TestWithParam<LayoutCase> {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_P(CudaLayouts, TrainAsOneRank) {
  const LayoutCase& c = GetParam();
  const Bounds bounds = c.one.device.precision == Precision::F32 ? kCudaF32 : kCudaBf16;
  const Comparison compared =
      compare_runs(train_layout(c.many, kCudaSteps), train_layout(c.one, kCudaSteps));
  for (const Difference& d : compared.all())
    ASSERT_LE(d.ratio, bounds.of(d.quantity)) << name_of(d) << " in step " << d.step;
}

std::vector<LayoutCase> cases() {
  std::vector<LayoutCase> all = cuda_layout_cases(Precision::F32);
  for (LayoutCase& c : cuda_layout_cases(Precision::Bf16)) all.push_back(std::move(c));
  return all;
}

INSTANTIATE_TEST_SUITE_P(Of, CudaLayouts, ::testing::ValuesIn(cases()),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace bev::test
