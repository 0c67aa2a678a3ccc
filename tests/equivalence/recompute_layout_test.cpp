// Stages whose blocks are computed again in groups, or of which some are, train what one rank
// trains that keeps everything: losses, gradients and weights after each of three steps, in
// float64.
#include <gtest/gtest.h>

#include "equivalence/layout_cases.h"
#include "support/layout_name.h"
#include "verify/layout_name.h"
#include "verify/run_comparison.h"

namespace bev::test {
namespace {

constexpr int kRecomputeSteps = 3;

// Three layers in each stage: a group of two and one of one, or one block that is recomputed and
// two that are not. Compared with one rank that keeps everything.
class RecomputedLayouts : public ::testing::TestWithParam<const char*> {
 protected:
  static void expect_same_as_kept(const Config& model, const RecomputeConfig& recompute) {
    const ParallelConfig layout = parse_layout(GetParam());
    Config kept = model;
    kept.model.layers = 3 * layout.pipeline * layout.chunks;
    // Adam divides small gradients by themselves, and twelve layers have some that are mostly
    // rounding.
    kept.optim.eps = 1e-4;
    Config recomputed = kept;
    recomputed.parallel = layout;
    recomputed.recompute = recompute;
    const Comparison compared = compare_runs(train_layout(recomputed, kRecomputeSteps),
                                             train_layout(kept, kRecomputeSteps));
    const auto found = compared.first_beyond(1e-12);
    EXPECT_FALSE(found) << name_of(*found) << " differs by " << found->ratio << " in step "
                        << found->step;
  }
  static RecomputeConfig full(RecomputeMethod method, int64_t layers) {
    return {.granularity = Recompute::Full, .method = method, .layers = layers};
  }
};

constexpr auto kUniform = RecomputeMethod::Uniform, kBlock = RecomputeMethod::Block;

// Its weight gradients, which a schedule may defer, read the hidden states between its blocks.
Config post_norm_bert() {
  Config c = divisible_bert();
  c.model.norm_placement = NormPlacement::Post;
  return c;
}

TEST_P(RecomputedLayouts, InGroups) {
  expect_same_as_kept(divisible_gpt(), full(kUniform, 2));
  expect_same_as_kept(divisible_llama(), full(kUniform, 3));
  expect_same_as_kept(post_norm_bert(), full(kUniform, 2));
}

TEST_P(RecomputedLayouts, TheFirstOfEachStage) {
  expect_same_as_kept(divisible_gpt(), full(kBlock, 2));
  expect_same_as_kept(divisible_llama(), full(kBlock, 1));
  expect_same_as_kept(post_norm_bert(), full(kBlock, 2));
}

INSTANTIATE_TEST_SUITE_P(Of, RecomputedLayouts,
                         ::testing::Values("tp2", "tp2.sp", "dp2.zero2", "dp2.zero3",
                                           "dp2.zero3.overlap", "pp2", "pp2.chunks2", "pp2.gpipe",
                                           "pp2.zero-bubble", "tp2.sp.pp2.zero-bubble",
                                           "tp2.sp.dp2.pp2.chunks2.zero3"),
                         [](const auto& layout) { return layout_name(layout.param); });

// Tensor ranks share what is kept of the inputs.
class DistributedInputs : public RecomputedLayouts {
 protected:
  static RecomputeConfig distributed(RecomputeMethod method, int64_t layers) {
    RecomputeConfig recompute = full(method, layers);
    recompute.distribute = true;
    return recompute;
  }
};

TEST_P(DistributedInputs, OfEveryBlock) {
  expect_same_as_kept(divisible_gpt(), distributed(kBlock, 0));
  expect_same_as_kept(divisible_llama(), distributed(kBlock, 0));
}

TEST_P(DistributedInputs, OfGroups) {
  expect_same_as_kept(divisible_gpt(), distributed(kUniform, 2));
  expect_same_as_kept(divisible_llama(), distributed(kUniform, 3));
}

TEST_P(DistributedInputs, OfTheFirstOfEachStage) {
  expect_same_as_kept(divisible_gpt(), distributed(kBlock, 2));
  expect_same_as_kept(divisible_llama(), distributed(kBlock, 1));
}

// The elements divide, the tokens do not.
TEST_P(DistributedInputs, WhateverRowsTheyBelongTo) {
  Config c = divisible_gpt();
  c.train.sequence = 7;
  expect_same_as_kept(c, distributed(kUniform, 2));
}

INSTANTIATE_TEST_SUITE_P(Of, DistributedInputs,
                         ::testing::Values("one", "tp2", "tp4", "tp2.dp2.zero3", "tp2.pp2",
                                           "tp2.pp2.zero-bubble", "tp2.pp2.chunks2"),
                         [](const auto& layout) { return layout_name(layout.param); });

}  // namespace
}  // namespace bev::test
