// Any layout gives the same training as one rank: losses, gradients and weights after each of three
// steps, in float64.
#include <gtest/gtest.h>

#include "equivalence/layout_cases.h"
#include "verify/comparison.h"

namespace bev::test {
namespace {

constexpr int kSteps = 3;

class Layouts : public ::testing::TestWithParam<LayoutCase> {};

TEST_P(Layouts, TrainAsOneRank) {
  const auto& [layout, name, one, many] = GetParam();
  const Comparison compared = compare(train_layout(many, kSteps), train_layout(one, kSteps));
  const auto found = compared.first_beyond(1e-12);
  EXPECT_FALSE(found) << name_of(*found) << " differs by " << found->ratio << " in step "
                      << found->step;
}

std::string case_name(const ::testing::TestParamInfo<LayoutCase>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Quick, Layouts, ::testing::ValuesIn(quick_layout_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Slow, Layouts, ::testing::ValuesIn(slow_layout_cases()), case_name);

}  // namespace
}  // namespace bev::test
