// Any layout gives the same training as one rank: losses, gradients and weights after each of three
// steps, in float64.
#include <gtest/gtest.h>

#include "support/tiny_models.h"
#include "verify/comparison.h"

namespace bev::test {
namespace {

constexpr int kSteps = 3;

// Four layers and four heads, so that every axis can be cut in four.
Config divisible(Config c) {
  c.model.layers = 4;
  c.model.heads = 4;
  c.model.vocab = 32;
  c.model.hidden_dropout = 0.1;
  c.model.attention_dropout = 0.1;
  c.train.sequence = 8;
  c.train.micro_batch = 1;
  c.train.global_batch = 8;
  c.device.threads = 1;
  return c;
}

Config gpt() { return divisible(tiny_gpt()); }
Config llama() {
  Config c = divisible(tiny_llama());
  c.model.kv_heads = 2;
  return c;
}

struct Layout {
  const char* name;
  int64_t threads, tensor, pipeline;
  bool sequence = false;
  int64_t zero = 0, chunks = 1;
  ScheduleKind schedule = ScheduleKind::OneFOneB;

  Config of(Config c) const {
    c.parallel.threads = threads;
    c.parallel.tensor = tensor;
    c.parallel.pipeline = pipeline;
    c.parallel.sequence = sequence;
    c.parallel.zero = zero;
    c.parallel.chunks = chunks;
    c.parallel.schedule = schedule;
    return c;
  }
};

constexpr auto kGPipe = ScheduleKind::GPipe, kZeroBubble = ScheduleKind::ZeroBubble;

const std::vector<Layout>& layouts() {
  static const std::vector<Layout> all{
      {"tp2", 2, 2, 1},
      {"tp4", 4, 4, 1},
      {"tp2_sp", 2, 2, 1, true},
      {"tp4_sp", 4, 4, 1, true},
      {"dp2", 2, 1, 1},
      {"dp4", 4, 1, 1},
      {"dp2_zero1", 2, 1, 1, false, 1},
      {"dp4_zero1", 4, 1, 1, false, 1},
      {"dp2_zero2", 2, 1, 1, false, 2},
      {"dp4_zero2", 4, 1, 1, false, 2},
      {"dp2_zero3", 2, 1, 1, false, 3},
      {"dp4_zero3", 4, 1, 1, false, 3},
      {"pp2", 2, 1, 2},
      {"pp4", 4, 1, 4},
      {"pp2_gpipe", 2, 1, 2, false, 0, 1, kGPipe},
      {"pp4_zero_bubble", 4, 1, 4, false, 0, 1, kZeroBubble},
      {"pp2_chunks2", 2, 1, 2, false, 0, 2},
      {"tp2_dp2", 4, 2, 1},
      {"tp2_sp_dp2_zero1", 4, 2, 1, true, 1},
      {"tp2_pp2", 4, 2, 2},
      {"tp2_sp_pp2_zero_bubble", 4, 2, 2, true, 0, 1, kZeroBubble},
      {"dp2_pp2", 4, 1, 2},
      {"dp2_pp2_chunks2_zero1", 4, 1, 2, false, 1, 2},
      {"tp4_dp2_zero2", 8, 4, 1, false, 2},
      {"dp2_pp2_chunks2_zero2", 4, 1, 2, false, 2, 2},
      {"tp2_sp_dp2_pp2_zero1", 8, 2, 2, true, 1},
      {"tp2_sp_dp2_pp2_zero2", 8, 2, 2, true, 2, 1, kGPipe},
      {"tp2_sp_dp2_pp2_chunks2_zero3", 8, 2, 2, true, 3, 2},
      {"tp4_sp_dp2_pp2_chunks2", 16, 4, 2, true, 1, 2},
  };
  return all;
}

class Layouts : public ::testing::TestWithParam<Layout> {
 protected:
  static void expect_same_training(const Config& one, const Config& many) {
    const Comparison compared = compare(train_layout(many, kSteps), train_layout(one, kSteps));
    const auto found = compared.first_beyond(1e-12);
    EXPECT_FALSE(found) << name_of(*found) << " differs by " << found->ratio << " in step "
                        << found->step;
  }
};

TEST_P(Layouts, GptTiedWithDropout) { expect_same_training(gpt(), GetParam().of(gpt())); }

TEST_P(Layouts, LlamaUntiedWithDropout) { expect_same_training(llama(), GetParam().of(llama())); }

TEST_P(Layouts, GptWithoutDropoutBySgd) {
  Config c = gpt();
  c.model.hidden_dropout = c.model.attention_dropout = 0;
  c.optim.kind = OptimizerKind::Sgd;
  expect_same_training(c, GetParam().of(c));
}

TEST_P(Layouts, LlamaTiedRecomputed) {
  Config c = llama();
  c.model.tied = true;
  c.model.qk_norm = true;
  c.recompute.granularity = Recompute::Full;
  expect_same_training(c, GetParam().of(c));
}

TEST_P(Layouts, GptSelectivelyRecomputedWithSmoothing) {
  Config c = gpt();
  c.recompute.granularity = Recompute::Selective;
  c.loss.label_smoothing = 0.1;
  c.loss.z_loss = 0.01;
  expect_same_training(c, GetParam().of(c));
}

INSTANTIATE_TEST_SUITE_P(Of, Layouts, ::testing::ValuesIn(layouts()),
                         [](const auto& layout) { return std::string(layout.param.name); });

// Three layers in each stage: a group of two and one of one, or one block that is recomputed and
// two that are not. Compared with one rank that keeps everything.
class RecomputedLayouts : public Layouts {
 protected:
  static void expect_same_as_kept(const Config& model, const RecomputeConfig& recompute) {
    Config kept = model;
    kept.model.layers = 3 * GetParam().pipeline * GetParam().chunks;
    // Adam divides small gradients by themselves, and twelve layers have some that are mostly
    // rounding.
    kept.optim.eps = 1e-4;
    Config recomputed = GetParam().of(kept);
    recomputed.recompute = recompute;
    expect_same_training(kept, recomputed);
  }
  static RecomputeConfig full(RecomputeMethod method, int64_t layers) {
    return {.granularity = Recompute::Full, .method = method, .layers = layers};
  }
};

constexpr auto kUniform = RecomputeMethod::Uniform, kBlock = RecomputeMethod::Block;

TEST_P(RecomputedLayouts, InGroups) {
  expect_same_as_kept(gpt(), full(kUniform, 2));
  expect_same_as_kept(llama(), full(kUniform, 3));
}

TEST_P(RecomputedLayouts, TheFirstOfEachStage) {
  expect_same_as_kept(gpt(), full(kBlock, 2));
  expect_same_as_kept(llama(), full(kBlock, 1));
}

INSTANTIATE_TEST_SUITE_P(
    Of, RecomputedLayouts,
    ::testing::Values(Layout{"tp2", 2, 2, 1}, Layout{"tp2_sp", 2, 2, 1, true},
                      Layout{"dp2_zero2", 2, 1, 1, false, 2},
                      Layout{"dp2_zero3", 2, 1, 1, false, 3}, Layout{"pp2", 2, 1, 2},
                      Layout{"pp2_chunks2", 2, 1, 2, false, 0, 2},
                      Layout{"pp2_gpipe", 2, 1, 2, false, 0, 1, kGPipe},
                      Layout{"pp2_zero_bubble", 2, 1, 2, false, 0, 1, kZeroBubble},
                      Layout{"tp2_sp_pp2_zero_bubble", 4, 2, 2, true, 0, 1, kZeroBubble},
                      Layout{"tp2_sp_dp2_pp2_chunks2_zero3", 8, 2, 2, true, 3, 2}),
    [](const auto& layout) { return std::string(layout.param.name); });

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
  expect_same_as_kept(gpt(), distributed(kBlock, 0));
  expect_same_as_kept(llama(), distributed(kBlock, 0));
}

TEST_P(DistributedInputs, OfGroups) {
  expect_same_as_kept(gpt(), distributed(kUniform, 2));
  expect_same_as_kept(llama(), distributed(kUniform, 3));
}

TEST_P(DistributedInputs, OfTheFirstOfEachStage) {
  expect_same_as_kept(gpt(), distributed(kBlock, 2));
  expect_same_as_kept(llama(), distributed(kBlock, 1));
}

// The elements divide, the tokens do not.
TEST_P(DistributedInputs, WhateverRowsTheyBelongTo) {
  Config c = gpt();
  c.train.sequence = 7;
  expect_same_as_kept(c, distributed(kUniform, 2));
}

INSTANTIATE_TEST_SUITE_P(
    Of, DistributedInputs,
    ::testing::Values(Layout{"one", 1, 1, 1}, Layout{"tp2", 2, 2, 1}, Layout{"tp4", 4, 4, 1},
                      Layout{"tp2_dp2_zero3", 4, 2, 1, false, 3}, Layout{"tp2_pp2", 4, 2, 2},
                      Layout{"tp2_pp2_zero_bubble", 4, 2, 2, false, 0, 1, kZeroBubble},
                      Layout{"tp2_pp2_chunks2", 4, 2, 2, false, 0, 2}),
    [](const auto& layout) { return std::string(layout.param.name); });

}  // namespace
}  // namespace bev::test
