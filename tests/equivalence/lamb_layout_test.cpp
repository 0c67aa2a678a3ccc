// LAMB with norms of whole tensors trains under every layout what it trains on one rank.
#include <gtest/gtest.h>

#include "equivalence/layout_bounds.h"
#include "equivalence/layout_cases.h"
#include "support/layout_name.h"
#include "verify/layout_name.h"
#include "verify/layout_run.h"
#include "verify/run_comparison.h"

namespace bev::test {
namespace {

// The gradient of the keys' bias is rounding noise, which a small eps would scale up to the size of
// other updates, and so into the norm of the whole bias. A constant rate would return a bias of two
// elements, whose clamped steps have one size, to rounding noise around 0.
Config with_lamb(Config config, OptimizerKind kind) {
  config.optim.kind = kind;
  config.optim.eps = 1e-4;
  config.optim.lamb_clip = 0.3;  // below optim.clip
  config.optim.decay = LrDecay::Linear;
  config.optim.decay_iterations = 10;
  config.model.tied = true;
  config.model.vocab = 128;  // the largest parameter, which the stages between the ends do not have
  return config;
}

std::vector<StepOutcome> train_with(const Config& config, const char* layout) {
  Config many = config;
  many.parallel = parse_layout(layout);
  return train_layout(many, 3);
}

void expect_same(const Config& config, const char* layout,
                 const std::vector<StepOutcome>& expected) {
  for (const Difference& d : compare_runs(train_with(config, layout), expected).all())
    ASSERT_LE(d.ratio, kF64.of(d.quantity))
        << name_of_choice(config.optim.kind) << ", step " << d.step << ", " << name_of(d);
}

class LambLayouts : public ::testing::TestWithParam<const char*> {};

// Fails when the norm of a shard or of a copy serves for that of the tensor, a tied table counts
// twice or not at all, ranks of a shard group see different norms, or the largest tensor is looked
// for among those of one rank.
TEST_P(LambLayouts, TrainAsOneRank) {
  for (const OptimizerKind kind :
       {OptimizerKind::Lamb, OptimizerKind::LambPaper, OptimizerKind::LambPreprint,
        OptimizerKind::MyLamb, OptimizerKind::MyLamb2, OptimizerKind::MyLamb3}) {
    for (const Config& model : {divisible_gpt(), divisible_llama(), divisible_bert()}) {
      const Config config = with_lamb(model, kind);
      expect_same(config, GetParam(), train_with(config, ""));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, LambLayouts,
                         ::testing::Values("tp2", "tp4.sp", "dp2", "dp2.zero1", "dp2.zero2",
                                           "dp2.zero3", "pp2", "pp4", "pp2.chunks2.interleaved",
                                           "tp2.dp2.zero1", "tp2.sp.dp2.zero3.overlap",
                                           "tp2.dp2.pp2.zero1.zero-bubble"),
                         [](const auto& layout) { return layout_name(layout.param); });

// Solution 1 of LAMBTP sums both norms over tensor ranks, copies once for each: the ratio is that
// of one rank.
TEST(LambTp, SolutionOfWholeNormsTrainsAsOneRank) {
  Config config = with_lamb(divisible_gpt(), OptimizerKind::LambTp);
  config.optim.lambtp_solution = 1;
  const std::vector<StepOutcome> expected = train_with(config, "");
  for (const char* layout : {"tp2", "tp4.sp", "tp2.dp2.zero1", "tp2.pp2"})
    expect_same(config, layout, expected);
}

// Norms of tensor-parallel shards do not depend on the rest of the layout. Copies of a parameter
// stay equal: that is checked by train_layout() through its checksums of losses and norms.
TEST(LambShardNorms, DependOnTensorRanksOnly) {
  for (const int64_t solution : {-1, 0, 2, 3}) {
    Config config =
        with_lamb(divisible_gpt(), solution < 0 ? OptimizerKind::MyLamb : OptimizerKind::LambTp);
    if (solution < 0) config.optim.lamb_norms = NormScope::TensorShard;
    if (solution >= 0) config.optim.lambtp_solution = solution;
    const std::vector<StepOutcome> expected = train_with(config, "tp2");
    for (const char* layout :
         {"tp2.sp", "tp2.dp2", "tp2.dp2.zero2", "tp2.pp2", "tp2.dp2.pp2.zero1"})
      expect_same(config, layout, expected);
    double most = 0;
    for (const Difference& d : compare_runs(train_with(config, ""), expected).all())
      most = std::max(most, d.ratio);
    EXPECT_GT(most, 1e-4) << "the norms are not those of shards";
  }
}

}  // namespace
}  // namespace bev::test
