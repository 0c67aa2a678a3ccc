// The kinds of LAMB train under a layout what they train on one rank; kinds with norms of
// tensor-parallel shards, what they train on as many tensor ranks. Optimizer "lamb" itself is a
// factor of layout_test.cpp.
#include <gtest/gtest.h>

#include "equivalence/layout_bounds.h"
#include "equivalence/layout_cases.h"
#include "support/layout_name.h"
#include "verify/layout_name.h"
#include "verify/layout_run.h"
#include "verify/run_comparison.h"

namespace bev::test {
namespace {

Config under(Config config, const char* layout) {
  config.parallel = parse_layout(layout);
  return with_layers_for_all_stages(config);
}

void expect_same(const Config& config, const std::vector<StepOutcome>& expected) {
  for (const Difference& d : compare_runs(train_layout(config, 3), expected).all())
    ASSERT_LE(d.ratio, kF64.of(d.quantity))
        << name_of_choice(config.optim.kind) << ", step " << d.step << ", " << name_of(d);
}

class LambLayouts : public ::testing::TestWithParam<const char*> {};

// Fails when the norm of a shard or of a copy serves for that of the tensor, a tied table counts
// twice or not at all, ranks of a shard group see different norms, or the largest tensor is looked
// for among those of one rank.
TEST_P(LambLayouts, TrainAsOneRank) {
  Config bert = divisible_bert();
  bert.model.norm_placement = NormPlacement::Post;
  bert.recompute.granularity = Recompute::Full;
  for (const OptimizerKind kind :
       {OptimizerKind::LambPaper, OptimizerKind::LambPreprint, OptimizerKind::MyLamb,
        OptimizerKind::MyLamb2, OptimizerKind::MyLamb3, OptimizerKind::LambTp}) {
    for (const Config& model : {divisible_gpt(), bert}) {
      const Config many = under(with_optimizer(model, kind), GetParam());
      Config one = many;
      one.parallel = {};
      expect_same(many, train_layout(one, 3));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, LambLayouts,
                         ::testing::Values("tp2", "tp4.sp.dp2.zero1", "dp2", "dp2.zero1",
                                           "dp2.zero2", "dp2.zero3", "pp2.gpipe", "pp4",
                                           "tp2.pp2.chunks2.interleaved",
                                           "tp2.sp.dp2.zero3.overlap",
                                           "tp2.dp2.pp2.zero1.zero-bubble"),
                         [](const auto& layout) { return layout_name(layout.param); });

// Norms of tensor-parallel shards do not depend on the rest of the layout. Copies of a parameter
// stay equal: that is checked by train_layout() through its checksums of losses and norms.
TEST(LambShardNorms, DependOnTensorRanksOnly) {
  for (const int64_t solution : {-1, 0, 2, 3}) {
    Config config = with_optimizer(divisible_bert(),
                                   solution < 0 ? OptimizerKind::MyLamb : OptimizerKind::LambTp);
    if (solution < 0) config.optim.lamb_norms = NormScope::TensorShard;
    if (solution >= 0) config.optim.lambtp_solution = solution;
    const std::vector<StepOutcome> expected = train_layout(under(config, "tp2"), 3);
    for (const char* layout :
         {"tp2.sp", "tp2.dp2", "tp2.dp2.zero2", "tp2.pp2.gpipe", "tp2.dp2.pp2.zero1"})
      expect_same(under(config, layout), expected);
    double most = 0;
    for (const Difference& d : compare_runs(train_layout(under(config, ""), 3), expected).all())
      most = std::max(most, d.ratio);
    EXPECT_GT(most, 1e-4) << "the norms are not those of shards";
  }
}

}  // namespace
}  // namespace bev::test
