// The mean of micro-batch means (loss.average = "micro-batch") under layouts.
#include <gtest/gtest.h>

#include "equivalence/layout_bounds.h"
#include "equivalence/layout_cases.h"
#include "support/layout_name.h"
#include "verify/layout_name.h"
#include "verify/layout_run.h"
#include "verify/run_comparison.h"

namespace bev::test {
namespace {

class AveragedLoss : public ::testing::TestWithParam<const char*> {};

// Micro-batches with different numbers of masked tokens, some without any value of a loss, count
// equally. Fails when each data-parallel rank counts only its own micro-batches.
TEST_P(AveragedLoss, IsThatOfOneRank) {
  Config many = divisible_bert();
  many.loss.average = LossAverage::MicroBatch;
  many.parallel = parse_layout(GetParam());
  many = with_layers_for_all_stages(many);
  Config one = many;
  one.parallel = {};
  for (const Difference& d : compare_runs(train_layout(many, 2), train_layout(one, 2)).all())
    ASSERT_LE(d.ratio, kF64.of(d.quantity)) << "step " << d.step;
}

INSTANTIATE_TEST_SUITE_P(Of, AveragedLoss,
                         ::testing::Values("tp2.sp", "dp4.zero1", "dp2.zero3.overlap", "pp4.gpipe",
                                           "tp2.dp2.pp2", "pp2.zero-bubble",
                                           "pp2.chunks2.interleaved"),
                         [](const auto& layout) { return layout_name(layout.param); });

}  // namespace
}  // namespace bev::test
