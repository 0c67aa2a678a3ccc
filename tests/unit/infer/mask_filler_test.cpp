#include "infer/mask_filler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "infer/embedding/text_embedding.h"
#include "support/expect_error.h"
#include "unit/infer/tiny_berts.h"

namespace bev {
namespace {

using test::expect_error;
using test::StoredBert;

TEST(BertText, PutsClsAndSepAroundTokensAndKnowsTheMask) {
  const StoredBert stored;
  BertText text(stored.folder());
  const std::vector<int32_t> tokens = text.tokens("Paris is the [MASK] of France.");
  EXPECT_EQ(tokens, (std::vector<int32_t>{5, 6, 7, 4, 9, 10, 11}));
  EXPECT_EQ(text.wrapped(tokens), (std::vector<int32_t>{2, 5, 6, 7, 4, 9, 10, 11, 3}));
  EXPECT_EQ(text.token_name(12), "##s");
  const EncoderInput input = masked_input(text, tokens);
  EXPECT_EQ(input.marked, std::vector<int32_t>{4});
}

// Megatron-LM's rules of 2023 take [MASK] in a text for six characters.
TEST(BertText, KnowsTheMaskUnderTheOldRulesToo) {
  const StoredBert stored;
  ModelFolder folder = stored.folder();
  folder.config.train.compat = Compat::Classic;
  EXPECT_EQ(BertText(folder).tokens("the [MASK]"), (std::vector<int32_t>{7, 4}));
}

TEST(BertText, RefusesAFolderWithoutItsVocabulary) {
  const StoredBert stored;
  ModelFolder folder = stored.folder();
  folder.config.data.vocab_file.clear();
  expect_error(ErrorKind::Usage, "a BERT needs the vocabulary of its training",
               [&] { const BertText text(folder); });
  folder = stored.folder();
  folder.config.model.vocab = 13;
  expect_error(ErrorKind::Usage, "has 14 tokens, but the model has 13",
               [&] { const BertText text(folder); });
  folder = stored.folder();
  folder.config.data.tokenizer = TokenizerKind::Byte;
  folder.config.model.vocab = kByteVocab;
  expect_error(ErrorKind::Usage, "has no [CLS]", [&] { const BertText text(folder); });
}

// Fails when candidates are not the largest logits in their order, or probabilities are not those
// of a softmax.
TEST(MaskFiller, TakesTheLargestLogits) {
  const StoredBert stored;
  LoadedModel model = stored.load(2, 9);
  EncoderPass pass(model);
  BertText text(stored.folder());
  std::vector<EncoderInput> inputs;
  for (const char* line : {"a [MASK]", "paris is the [MASK] of [MASK]", "[MASK] is"})
    inputs.push_back(masked_input(text, text.tokens(line)));
  const std::vector<FilledText> five = fill_masks(pass, inputs, 5);
  const std::vector<FilledText> all = fill_masks(pass, inputs, 100);
  ASSERT_EQ(five[1].size(), 2U);
  EXPECT_EQ(five[1][1].position, 6);
  pass.logits(
      inputs,
      [&](size_t input, size_t mark, std::span<const double> logits) {
        const std::vector<MaskCandidate>& found = all[input][mark].candidates;
        ASSERT_EQ(found.size(), logits.size());
        double sum = 0, total = 0;
        for (const double logit : logits) sum += std::exp(logit);
        for (size_t i = 0; i < found.size(); ++i) {
          const double logit = logits[static_cast<size_t>(found[i].id)];
          EXPECT_NEAR(found[i].probability, std::exp(logit) / sum, 1e-12);
          if (i > 0) {
            EXPECT_LE(logit, logits[static_cast<size_t>(found[i - 1].id)]);
          }
          total += found[i].probability;
          if (i < 5) {
            EXPECT_EQ(five[input][mark].candidates[i].id, found[i].id);
          }
        }
        EXPECT_NEAR(total, 1, 1e-12);
        EXPECT_EQ(five[input][mark].candidates.size(), 5U);
      },
      [](int64_t) {});
}

// Fails when weights that are not finite give words all the same.
TEST(MaskFiller, RefusesProbabilitiesThatAreNotFinite) {
  const StoredBert stored;
  LoadedModel model = stored.load(1, 9);
  const Param* bias = model.placed().params.find("lm_head.bias");
  const std::vector<double> nan(static_cast<size_t>(bias->value.shape.elements()), std::nan(""));
  model.device().upload(nan.data(), bias->value.data, nan.size() * sizeof(double));
  EncoderPass pass(model);
  BertText text(stored.folder());
  const std::vector<EncoderInput> inputs{masked_input(text, text.tokens("[MASK]"))};
  expect_error(ErrorKind::Numerics, "no word a finite probability",
               [&] { fill_masks(pass, inputs, 5); });
}

TEST(TextEmbedding, CutsLongTextsBeforeSep) {
  const StoredBert stored;
  BertText text(stored.folder());
  const std::vector<int32_t> tokens = text.tokens("paris is the capital of france .");
  const EmbeddingInput cut = embedding_input(text, tokens, 5);
  EXPECT_EQ(cut.input.ids, (std::vector<int32_t>{2, 5, 6, 7, 3}));
  EXPECT_EQ(cut.cut, 4);
  EXPECT_EQ(embedding_input(text, tokens, 9).cut, 0);
  EXPECT_EQ(embedding_input(text, {}, 9).input.ids, (std::vector<int32_t>{2, 3}));
}

// Fails when padding or another text is pooled too, or [CLS] is not the first token.
TEST(TextEmbedding, PoolsTheStatesOfItsTokens) {
  const StoredBert stored;
  LoadedModel model = stored.load(2, 9);
  EncoderPass pass(model);
  BertText text(stored.folder());
  std::vector<EncoderInput> inputs;
  for (const char* line : {"a", "paris is the capital", ""})
    inputs.push_back(embedding_input(text, text.tokens(line), 9).input);
  const auto mean = embed_texts(pass, inputs, {.pooling = Pooling::Mean});
  const auto cls = embed_texts(pass, inputs, {.pooling = Pooling::Cls});
  pass.hidden(
      inputs,
      [&](size_t input, std::span<const float> hidden) {
        const size_t rows = inputs[input].ids.size(), width = hidden.size() / rows;
        ASSERT_EQ(mean[input].size(), width);
        for (size_t column = 0; column < width; ++column) {
          double sum = 0;
          for (size_t row = 0; row < rows; ++row) sum += hidden[row * width + column];
          EXPECT_NEAR(mean[input][column], sum / static_cast<double>(rows), 1e-6);
          EXPECT_EQ(cls[input][column], hidden[column]);
        }
      },
      [](int64_t) {});
}

}  // namespace
}  // namespace bev
