// Models with two hidden states: a message between stages carries one or both of them.
#include <gtest/gtest.h>

#include "comm/thread_communicator.h"
#include "equivalence/layout_bounds.h"
#include "equivalence/layout_cases.h"
#include "ops/make_device.h"
#include "pipeline/rank_model.h"
#include "support/layout_name.h"
#include "support/two_state_models.h"
#include "verify/layout_name.h"
#include "verify/layout_run.h"
#include "verify/run_comparison.h"

namespace bev::test {
namespace {

class TwoStates : public ::testing::TestWithParam<const char*> {
 protected:
  static void expect_as_one_rank(const ModelOptions& model, int64_t layers) {
    for (const Recompute recompute : {Recompute::None, Recompute::Full}) {
      Config many = divisible_gpt();
      many.parallel = parse_layout(GetParam());
      many.model.layers = layers;
      many.model.hidden_dropout = 0;  // norms then sum bias gradients
      many.recompute.granularity = recompute;
      many.recompute.distribute = recompute == Recompute::Full && many.parallel.tensor > 1;
      many = with_layers_for_all_stages(many);
      Config one = many;
      one.parallel = {};
      one.recompute = {};
      const Comparison compared =
          compare_runs(train_layout(many, 3, model), train_layout(one, 3, model));
      for (const Difference& d : compared.all())
        ASSERT_LE(d.ratio, kF64.of(d.quantity))
            << name_of_choice(recompute) << ", step " << d.step << ": " << name_of(d);
    }
  }
};

// Fails when a stage sends the state of the other tower, overwrites a state or gradient that passes
// through it, adds a head's gradient to the wrong state, or sums a table over two of its three
// holders.
TEST_P(TwoStates, TrainTowersAsOneRank) { expect_as_one_rank({.spec = two_towers}, 4); }

// Fails when a stage does not send on a state that it only reads, does not add to the gradient that
// it receives for it, or loses a state that a head reads last in its stage.
TEST_P(TwoStates, TrainEncoderAndDecoderAsOneRank) {
  expect_as_one_rank({.spec = encoder_decoder}, 6);
}

INSTANTIATE_TEST_SUITE_P(Of, TwoStates,
                         ::testing::Values("tp2", "tp2.sp", "dp2.zero3", "pp2", "pp4", "pp2.gpipe",
                                           "pp2.zero-bubble", "pp3.zero-bubble", "pp4.zero-bubble",
                                           "pp2.chunks2.interleaved", "pp2.chunks3.interleaved",
                                           "tp2.pp2", "tp2.sp.pp2.zero-bubble", "dp2.pp4",
                                           "dp2.pp4.zero1", "dp2.pp4.zero2.overlap",
                                           "dp2.pp2.zero3"),
                         [](const auto& layout) { return layout_name(layout.param); });

// Fails when the holders of a table are only the first and the last stage.
TEST(SharedTable, IsOnThreeStages) {
  Config config = divisible_gpt();
  config.parallel = parse_layout("pp4");
  config.model.layers = 4;
  run_ranks(4, std::chrono::seconds(60), [&](Communicator& world) {
    ProcessGroups groups(layout_of(config), world);
    const std::unique_ptr<Device> device = make_null_device(config.device);
    const RankModel model(config, *device, groups, {.spec = two_towers});
    const Param* table = model.params.find(kTokenTable);
    ASSERT_EQ(table == nullptr, world.rank() == 1);
    if (table == nullptr) return;
    EXPECT_EQ(table->spec.place.stages, (std::vector<int>{0, 2, 3}));
  });
}

}  // namespace
}  // namespace bev::test
