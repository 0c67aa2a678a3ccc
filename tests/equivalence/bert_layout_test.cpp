// BERT under every kind of layout trains what one rank trains.
#include <gtest/gtest.h>

#include "equivalence/layout_bounds.h"
#include "equivalence/layout_cases.h"
#include "support/layout_name.h"
#include "support/tiny_models.h"
#include "verify/layout_name.h"
#include "verify/layout_run.h"
#include "verify/run_comparison.h"

namespace bev::test {
namespace {

class BertLayouts : public ::testing::TestWithParam<const char*> {};

// Fails when the marked rows or the first tokens of another rank are lost under sequence
// parallelism, when the replicated layers of a head are summed over tensor ranks, when one of two
// losses is divided by the count of the other, or when deferred weight gradients read a hidden
// state that recomputation has dropped.
TEST_P(BertLayouts, TrainAsOneRank) {
  for (const NormPlacement placement : {NormPlacement::Pre, NormPlacement::Post}) {
    for (const Recompute recompute : {Recompute::None, Recompute::Selective, Recompute::Full}) {
      Config many = divisible_bert();
      many.model.norm_placement = placement;
      many.recompute.granularity = recompute;
      if (recompute == Recompute::Selective)
        many.model.hidden_dropout = many.model.attention_dropout = 0;
      many.parallel = parse_layout(GetParam());
      many = with_layers_for_all_stages(many);
      if (recompute == Recompute::Full) {
        // Groups of two blocks: a hidden state between them is recomputed.
        many.model.layers = 2 * many.parallel.pipeline * many.parallel.chunks;
        many.recompute.method = RecomputeMethod::Uniform;
        many.recompute.layers = 2;
      }
      Config one = many;
      one.parallel = {};
      for (const Difference& d : compare_runs(train_layout(many, 3), train_layout(one, 3)).all())
        ASSERT_LE(d.ratio, kF64.of(d.quantity)) << name_of_choice(placement) << ", "
                                                << name_of_choice(recompute) << ", step " << d.step;
    }
  }
}

// Micro-batches with different numbers of masked tokens, some without any value of a loss, count
// equally. Fails when the mean of a micro-batch is taken over the values of another one in flight,
// or when each rank counts only its own micro-batches.
TEST_P(BertLayouts, AverageMicroBatchesAsOneRank) {
  Config many = divisible_bert();
  many.loss.average = LossAverage::MicroBatch;
  many.parallel = parse_layout(GetParam());
  many = with_layers_for_all_stages(many);
  Config one = many;
  one.parallel = {};
  for (const Difference& d : compare_runs(train_layout(many, 2), train_layout(one, 2)).all())
    ASSERT_LE(d.ratio, kF64.of(d.quantity)) << "step " << d.step;
}

INSTANTIATE_TEST_SUITE_P(Of, BertLayouts,
                         ::testing::Values("tp2", "tp4", "tp2.sp", "tp4.sp", "dp2", "dp4.zero1",
                                           "dp4.zero2", "dp4.zero3", "dp2.zero3.overlap", "pp2",
                                           "pp4.gpipe", "pp2.zero-bubble",
                                           "pp2.chunks2.interleaved", "tp2.dp2.zero1",
                                           "tp2.sp.dp2.zero2", "tp2.sp.dp2.zero3.overlap",
                                           "tp2.pp2", "tp2.sp.pp2.zero-bubble", "dp2.pp2.zero2",
                                           "tp2.sp.dp2.pp2.zero1.overlap",
                                           "tp2.dp2.pp2.chunks2.zero3.interleaved"),
                         [](const auto& layout) { return layout_name(layout.param); });

}  // namespace
}  // namespace bev::test
