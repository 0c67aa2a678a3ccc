// T5: sizes, division into stages, and the two texts of its batches.
#include <gtest/gtest.h>

#include "config/resolve.h"
#include "config/rules/config_check.h"
#include "data/batch.h"
#include "data/mock_dataset.h"
#include "model/family/family.h"
#include "pipeline/rank_model.h"
#include "plan/dry_run.h"
#include "support/small_run.h"
#include "support/tiny_models.h"
#include "verify/layout_name.h"

namespace bev::test {
namespace {

Config t5_small() {
  Config c;
  c.model.family = ModelFamily::T5;
  c.model.layers = 6;
  c.model.width = 512;
  c.model.heads = 8;
  c.model.head_dim = 64;
  c.model.ffn = 2048;
  c.model.vocab = 30522 + 100;
  c.model.positions = 512;
  c.train.sequence = 512;
  c.train.decoder_sequence = 128;
  c.train.micro_batch = c.train.global_batch = 1;
  return c;
}

// Fails when a part of Megatron-LM's T5 is missing or has another size, or when sentinel ids do not
// count before the vocabulary is padded.
TEST(T5, HasTheParametersOfMegatronLm) {
  Config c = t5_small();
  EXPECT_EQ(resolve_model(c).padded_vocab, 30720);
  EXPECT_EQ(parameter_count(c), 60'162'048);
  c.model.layers = 12;
  c.model.width = 768;
  c.model.heads = 12;
  c.model.ffn = 3072;
  EXPECT_EQ(parameter_count(c), 222'495'744);
}

// Hugging Face's t5-small: no positions, biases or LM-head bias, two tables of relative positions.
TEST(T5, HasTheParametersOfHuggingFace) {
  Config c = t5_small();
  c.model.vocab = 32128;
  c.model.norm = NormKind::RmsNorm;
  c.model.activation = Activation::Relu;
  c.model.position = PositionKind::Relative;
  c.model.bias = BiasKind::None;
  c.model.head_bias = false;
  EXPECT_EQ(parameter_count(c), 60'506'624);
}

// First parts of the stages, and which is the first with a part of the decoder.
std::vector<std::pair<size_t, int64_t>> stages_of(Config c, const char* layout) {
  c.parallel = parse_layout(layout);
  EXPECT_TRUE(check_config(c).empty()) << layout;
  std::vector<std::pair<size_t, int64_t>> stages;
  for (const StageParts& stage : split_stages(t5_spec(c), c))
    stages.push_back({stage.parts.first, stage.blocks});
  return stages;
}

using Stages = std::vector<std::pair<size_t, int64_t>>;

// Embedding, six blocks, norm; the same of the decoder, and the head.
TEST(T5, StagesEndBetweenEncoderAndDecoder) {
  const Config c = t5_small();
  EXPECT_EQ(stages_of(c, "one"), (Stages{{0, 12}}));
  EXPECT_EQ(stages_of(c, "pp2"), (Stages{{0, 6}, {8, 6}}));
  EXPECT_EQ(stages_of(c, "pp4.split2"), (Stages{{0, 3}, {4, 3}, {8, 3}, {12, 3}}));
  EXPECT_EQ(stages_of(c, "pp4.split3"), (Stages{{0, 2}, {3, 2}, {5, 2}, {8, 6}}));
  EXPECT_EQ(stages_of(c, "pp2.chunks2.split1"), (Stages{{0, 6}, {8, 2}, {11, 2}, {13, 2}}));
}

// Fails when the default division counts layers only: one of the encoder has four times as many
// tokens.
TEST(T5, TheDefaultDivisionIsBalanced) {
  Config c = t5_small();
  c.parallel = parse_layout("pp4");
  EXPECT_EQ(decoder_stage(c), 2);
  c.model.vocab = 1000;
  EXPECT_EQ(decoder_stage(c), 3);
  std::swap(c.train.sequence, c.train.decoder_sequence);
  EXPECT_EQ(decoder_stage(c), 1);
  c.parallel = {};
  EXPECT_EQ(decoder_stage(c), 0);
}

// The states that enter the stages of a walk through four of them.
TEST(T5, DecoderStagesReceiveTwoStates) {
  Config c = t5_small();
  c.parallel = parse_layout("pp4.split2");
  const ModelSpec spec = t5_spec(c);
  std::vector<std::vector<int>> live;
  for (const StageParts& stage : split_stages(spec, c))
    live.push_back(live_hidden(spec, stage.parts.first));
  EXPECT_EQ(live, (std::vector<std::vector<int>>{{}, {0}, {0}, {0, 1}}));
}

TEST(T5, ABatchHasTwoTexts) {
  const Config c = tiny_t5();
  HostBatch batch;
  batch.resize(2, model_spec(c).batch);
  const MockDataset samples(c.model.vocab, 1);
  for (int64_t at = 0; at < 2; ++at) samples.read(5 + at, batch, at);
  ASSERT_EQ(batch.text_count(), 2U);
  const HostText &encoder = batch.text(kEncoderText), &decoder = batch.text(kDecoderText);
  EXPECT_EQ(encoder.length, 7);
  EXPECT_EQ(decoder.length, 5);
  EXPECT_EQ(batch.tokens_count(), 2 * (7 + 5));
  EXPECT_TRUE(encoder.targets.empty());
  EXPECT_EQ(decoder.targets.size(), 10U);
  EXPECT_EQ(encoder.rows[7], 6 * 7);
  EXPECT_EQ(decoder.rows[5], 6 * 5);
  EXPECT_EQ(batch.valid_tokens(), decoder.lengths[0] + decoder.lengths[1]);
  const HostBatch copy = batch;
  batch.exclude(0);
  EXPECT_EQ(batch.valid_tokens(), decoder.lengths[1]);
  EXPECT_EQ(copy.valid_tokens(), decoder.lengths[0] + decoder.lengths[1]);
}

// The loss with other tokens in the padding of a text.
double loss_with_padding(const Config& config, size_t text, int32_t token) {
  SmallRun run(config);
  const std::span<const HostBatch> read = run.loader.next();
  std::vector<HostBatch> batches(read.begin(), read.end());
  int64_t changed = 0;
  for (HostBatch& batch : batches) {
    HostText& changing = batch.text(text);
    for (int64_t at = 0; at < changing.tokens_count(); ++at) {
      if (at % changing.length < changing.lengths[static_cast<size_t>(at / changing.length)])
        continue;
      changing.tokens[static_cast<size_t>(at)] = token;
      ++changed;
    }
  }
  EXPECT_GT(changed, 0);
  return run.assembly.executor.evaluate(batches)[0].sum;
}

// Fails when an attention sees padding; only with the mask that Megatron-LM lost does the decoder
// see that of the encoder.
TEST(T5, TokensOfPaddingChangeNoLoss) {
  for (Config config : {tiny_t5(), tiny_huggingface_t5()}) {
    config.train.sequence = config.train.decoder_sequence = 9;
    for (const size_t text : {size_t{kEncoderText}, size_t{kDecoderText}})
      EXPECT_EQ(loss_with_padding(config, text, 11), loss_with_padding(config, text, 0));
    config.model.mask_cross_padding = false;
    EXPECT_NE(loss_with_padding(config, kEncoderText, 11),
              loss_with_padding(config, kEncoderText, 0));
    EXPECT_EQ(loss_with_padding(config, kDecoderText, 11),
              loss_with_padding(config, kDecoderText, 0));
  }
}

// Fails when the two texts count as one in the tokens of a sample.
TEST(T5, FlopCountTokensOfBothTexts) {
  const Config c = t5_small();
  EXPECT_EQ(resolve_batch(c).tokens_per_sample(), 640);
  const Plan plan = dry_run(c);
  const double encoder = 6 * (4 * 512 * 512 + 2 * 512 * 2048), cross = 6 * 2 * 512 * 512;
  const double gemms = 512 * (encoder + cross) + 128 * (encoder + cross + 512 * 30720);
  const double scores = 6 * 2 * 512 * (512.0 * 512 + 128.0 * 128 + 128.0 * 512);
  EXPECT_NEAR(plan.model_flops_per_token * 640, 6 * (gemms + scores), 0.02 * 6 * gemms);
}

}  // namespace
}  // namespace bev::test
