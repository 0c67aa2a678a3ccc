// Any layout gives the same training as one rank: losses, gradients and weights after each of three
// steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "equivalence/difference_table.h"
#include "equivalence/layout_bounds.h"
#include "equivalence/layout_cases.h"
#include "verify/layout_name.h"
#include "verify/run_comparison.h"

namespace bev::test {
namespace {

constexpr int kSteps = 3;

Comparison compared(const LayoutCase& c) {
  return compare_runs(train_layout(c.many, kSteps), train_layout(c.one, kSteps));
}

void expect_within(const Bounds& bounds, const Comparison& comparison) {
  for (const Difference& d : comparison.all()) {
    ASSERT_LE(d.ratio, bounds.of(d.quantity))
        << (d.quantity == Quantity::Weight ? "the value of " : "") << name_of(d) << " in step "
        << d.step;
  }
}

class Layouts : public ::testing::TestWithParam<LayoutCase> {};

TEST_P(Layouts, TrainAsOneRank) { expect_within(kF64, compared(GetParam())); }

TEST_P(Layouts, TrainAsOneRankOnCpu) { expect_within(kF32, compared(on_cpu(GetParam()))); }

std::string case_name(const ::testing::TestParamInfo<LayoutCase>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Quick, Layouts, ::testing::ValuesIn(quick_layout_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Splits, Layouts, ::testing::ValuesIn(split_layout_cases()), case_name);
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
