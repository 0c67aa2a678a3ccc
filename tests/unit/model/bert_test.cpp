// BERT: sizes, padding, and which values count in its losses.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "data/batch.h"
#include "model/family/family.h"
#include "model/losses.h"
#include "pipeline/rank_model.h"
#include "support/small_run.h"
#include "support/tiny_models.h"

namespace bev::test {
namespace {

int64_t parameters_of(int64_t layers, int64_t width, int64_t heads, bool binary_head = true) {
  Config c;
  c.model.binary_head = binary_head;
  c.model.family = ModelFamily::Bert;
  c.model.layers = layers;
  c.model.width = width;
  c.model.heads = heads;
  c.model.vocab = 30522;
  c.train.sequence = 512;
  c.train.micro_batch = 1;
  return parameter_count(c);
}

// Fails when a part of Megatron-LM's BERT is missing or has another size.
TEST(Bert, HasTheParametersOfMegatronLm) {
  EXPECT_EQ(parameters_of(4, 128, 16), 4'839'042);
  EXPECT_EQ(parameters_of(12, 768, 12), 110'160'258);
  EXPECT_EQ(parameters_of(24, 1024, 16), 336'297'858);
  EXPECT_EQ(parameters_of(85, 1024, 16), 1'104'667'522);
}

// Fails when a BERT without binary head keeps the pooler, or token types where Megatron-LM has
// none; that of Hugging Face has them.
TEST(Bert, WithoutBinaryHead) {
  constexpr int64_t kVocab = 30592, kPositions = 512, kWidth = 128, kLayers = 4;
  EXPECT_EQ(parameters_of(kLayers, kWidth, 16, false),
            (kVocab + kPositions) * kWidth + kLayers * (12 * kWidth * kWidth + 13 * kWidth) +
                2 * kWidth + kWidth * kWidth + kWidth + 2 * kWidth + kVocab);
  Config config = tiny_bert();
  config.model.binary_head = false;
  const auto has_types = [&] {
    for (const ParamSpec& spec : model_parameters(config))
      if (spec.role == Role::TypeTable) return true;
    return false;
  };
  EXPECT_FALSE(has_types());
  config.model.norm_placement = NormPlacement::Post;
  EXPECT_TRUE(has_types());
}

// Fails when initial output projections of a post-norm BERT are scaled without --deep-init, or
// those of another model are not.
TEST(Bert, ScalesItsOutputProjectionsAsMegatronLm) {
  Config config = tiny_bert();
  const auto deviations = [&] {
    std::set<double> found;
    for (const ParamSpec& spec : model_parameters(config))
      if (spec.name.ends_with("attention.out.weight") || spec.name.ends_with("mlp.down.weight"))
        found.insert(spec.init.std);
    return found;
  };
  const double plain = config.model.init_std;
  const double scaled = plain / std::sqrt(2.0 * static_cast<double>(config.model.layers));
  EXPECT_EQ(deviations(), std::set{scaled});
  config.model.norm_placement = NormPlacement::Post;
  EXPECT_EQ(deviations(), std::set{plain});
  config.model.deep_init = true;
  EXPECT_EQ(deviations(), std::set{scaled});
}

// Fails when the LM head ignores its activation.
TEST(Bert, TheLmHeadHasItsOwnActivation) {
  Config config = tiny_bert();
  const auto loss = [&] {
    SmallRun run(config);
    return run.assembly.executor.evaluate(run.loader.next())[0].sum;
  };
  const double exact = loss();
  config.model.head_activation = Activation::GeluTanh;
  EXPECT_NE(loss(), exact);
  EXPECT_NEAR(loss(), exact, 1e-2 * exact);
}

// Fails when a loss is not called as Megatron-LM calls it, now and in 2019.
TEST(Bert, NamesItsLossesAsMegatronLm) {
  const auto names = [](NormPlacement placement, bool binary_head) {
    Config config = tiny_bert();
    config.model.norm_placement = placement;
    config.model.binary_head = binary_head;
    std::string all;
    for (const LossSpec& loss : bert_spec(config).losses) all += loss.name + " ";
    return all;
  };
  EXPECT_EQ(names(NormPlacement::Pre, true), "lm sop ");
  EXPECT_EQ(names(NormPlacement::Post, true), "lm nsp ");
  EXPECT_EQ(names(NormPlacement::Post, false), "lm ");
}

// Fails when attention sees padding.
TEST(Bert, TokensOfPaddingChangeNoLoss) {
  for (const NormPlacement placement : {NormPlacement::Pre, NormPlacement::Post}) {
    Config config = tiny_bert();
    config.model.norm_placement = placement;
    config.train.sequence = 9;
    SmallRun run(config);
    const std::span<const HostBatch> read = run.loader.next();
    std::vector<HostBatch> batches(read.begin(), read.end());
    const LossSums before = run.assembly.executor.evaluate(batches);
    int64_t changed = 0;
    for (HostBatch& batch : batches) {
      for (size_t i = 0; i < batch.tokens.size(); ++i) {
        const auto at = static_cast<int64_t>(i);
        const int32_t used = batch.lengths[static_cast<size_t>(at / batch.length)];
        if (at % batch.length < used) continue;
        batch.tokens[i] = 11;
        ++changed;
      }
    }
    ASSERT_GT(changed, 0);
    const LossSums after = run.assembly.executor.evaluate(batches);
    for (const size_t loss : {size_t{0}, size_t{1}}) {
      EXPECT_GT(before[loss].count, 0);
      EXPECT_EQ(before[loss].sum, after[loss].sum);
    }
  }
}

// Fails when a sequence beyond the end of the data counts in one of the losses.
TEST(MaskedBatch, AnExcludedSequenceCountsInNoLoss) {
  HostBatch batch;
  batch.resize(2, masked_batch(8, 3));
  for (float& weight : batch.weight) weight = 1;
  for (float& weight : batch.label_weight) weight = 1;
  EXPECT_EQ(batch.targets_each(), 3);
  EXPECT_EQ(loss_count(LossUnit::Token, batch), 6);
  EXPECT_EQ(loss_count(LossUnit::Sequence, batch), 2);
  batch.exclude(1);
  EXPECT_EQ(loss_count(LossUnit::Token, batch), 3);
  EXPECT_EQ(loss_count(LossUnit::Sequence, batch), 1);
}

}  // namespace
}  // namespace bev::test
