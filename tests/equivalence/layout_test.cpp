// Any layout gives the same training as one rank: losses, gradients and weights after each of three
// steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "equivalence/difference_table.h"
#include "equivalence/layout_cases.h"
#include "verify/comparison.h"
#include "verify/layout_text.h"

namespace bev::test {
namespace {

constexpr int kSteps = 3;

Comparison compared(const LayoutCase& c) {
  return compare(train_layout(c.many, kSteps), train_layout(c.one, kSteps));
}

// The cpu device in f32. Adam divides what is left of a gradient that is nearly zero by itself, and
// that is rounding: with an eps of 1e-4, as in verify/shrink.cpp, it is scaled by 1e4 at most.
LayoutCase on_cpu(LayoutCase c) {
  for (Config* config : {&c.one, &c.many}) {
    config->device.kind = DeviceKind::Cpu;
    config->device.precision = Precision::F32;
    config->optim.eps = 1e-4;
  }
  return c;
}

struct Tolerances {
  double loss, gradient, weight;  // relative; that of the gradient norm is the gradient's

  double of(Quantity quantity) const {
    switch (quantity) {
      case Quantity::Loss: return loss;
      case Quantity::Weight: return weight;
      default: return gradient;
    }
  }
};

// Layouts differ in the order of sums only, so a difference is some roundings, of 2^-53 or 2^-24,
// times the terms of a sum over the sum. The terms of a loss are all positive. Those of a gradient
// cancel, most of all in the weights of norms, whose gradients sum 64 tokens behind up to 8 layers.
// A weight is off by at most the learning rate times what its gradients are off by over eps. The
// largest of all cases: in f64 5e-16, 6e-14 and 3e-13; in f32, with the portable, AVX2 and AVX-512
// kernels, 4e-7, 8e-5 and 1.4e-5. A sample that a rank forgets makes some 1e-2.
constexpr Tolerances kF64{1e-12, 1e-12, 1e-12}, kF32{2e-6, 4e-4, 1e-4};

void expect_within(const Tolerances& tolerances, const Comparison& comparison) {
  for (const Difference& d : comparison.all()) {
    ASSERT_LE(d.ratio, tolerances.of(d.quantity))
        << (d.quantity == Quantity::Weight ? "the value of " : "") << name_of(d) << " in step "
        << d.step;
  }
}

class Layouts : public ::testing::TestWithParam<LayoutCase> {};

TEST_P(Layouts, TrainAsOneRank) { expect_within(kF64, compared(GetParam())); }

TEST_P(Layouts, TrainAsOneRankOnCpu) { expect_within(kF32, compared(on_cpu(GetParam()))); }

std::string case_name(const ::testing::TestParamInfo<LayoutCase>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Quick, Layouts, ::testing::ValuesIn(quick_layout_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Slow, Layouts, ::testing::ValuesIn(slow_layout_cases()), case_name);

// Both ends of the pipeline hold the table; at the last it is the end of the matrices, which ranks
// that share the batch divide, with a gap behind it that the first does not have.
TEST(TiedTable, IsSummedWithoutTheGapBehindIt) {
  LayoutCase c;
  c.one = divisible_llama();
  c.one.model.tied = true;
  c.many = c.one;
  c.many.parallel = parse_layout("dp2.pp4");
  expect_within(kF64, compared(c));
}

// The table of docs/parallelism.md goes to the file that the environment names.
TEST(LayoutTable, HasARowForEachLayout) {
  const char* path = std::getenv("BEVATRON_EQUIVALENCE_TABLE");
  std::vector<LayoutCase> cases = quick_layout_cases();
  if (path == nullptr) {
    cases.resize(2);
  } else {
    std::ranges::move(slow_layout_cases(), std::back_inserter(cases));
  }
  DifferenceTable table;
  for (const LayoutCase& c : cases) {
    table.add(c.layout, DeviceKind::Reference, compared(c));
    table.add(c.layout, DeviceKind::Cpu, compared(on_cpu(c)));
  }
  const std::string markdown = table.markdown();
  EXPECT_EQ(markdown.find("| layout | reference: loss | gradient | weight | most in | cpu: loss"),
            0);
  for (const LayoutCase& c : cases)
    EXPECT_NE(markdown.find("\n| `" + c.layout + "` | "), std::string::npos) << c.layout;
  if (path != nullptr) std::ofstream(path) << markdown;
}

}  // namespace
}  // namespace bev::test
