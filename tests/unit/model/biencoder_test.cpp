// Bi-encoders: sizes, what is compared with what, and which pairs count.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "model/family/family.h"
#include "pipeline/batch_uploader.h"
#include "pipeline/rank_model.h"
#include "support/small_run.h"
#include "support/tiny_models.h"

namespace bev::test {
namespace {

Config small_biencoder(bool shared, int64_t projection) {
  Config c = tiny_biencoder();
  c.model.layers = 2;
  c.model.width = 20;
  c.model.heads = 4;
  c.model.ffn = 44;
  c.model.vocab = 83;
  c.model.positions = c.train.sequence = 18;
  c.model.shared_towers = shared;
  c.model.projection = projection;
  return c;
}

// Fails when a pooler or a head of BERT is left, token types are missing, or one encoder is counted
// twice.
TEST(Biencoder, HasTheParametersOfMegatronLm) {
  EXPECT_EQ(parameter_count(small_biencoder(true, 0)), 9268);
  EXPECT_EQ(parameter_count(small_biencoder(false, 12)), 19040);
  std::set<std::string> names;
  for (const ParamSpec& spec : model_parameters(small_biencoder(false, 12)))
    names.insert(spec.name);
  for (const char* name : {"query.embedding.tokens.weight", "context.layers.1.mlp.up.bias",
                           "query.projection.weight", "context.final_norm.weight"})
    EXPECT_TRUE(names.contains(name)) << name;
}

TEST(Biencoder, NamesItsLosses) {
  std::string all;
  for (const LossSpec& loss : biencoder_spec(tiny_biencoder()).losses)
    all += label_of_loss(loss.name) + ", ";
  EXPECT_EQ(all, "retrieval loss, top1_accuracy, top2_accuracy, ");
}

// Fails when scores are divided by the root of the size of the embeddings.
TEST(Biencoder, ScalesScoresByTheWidth) {
  Config config = small_biencoder(true, 5);
  const auto scale = [&] {
    return std::get<PairHeadSpec>(biencoder_spec(config).parts.back().is).scale;
  };
  EXPECT_EQ(scale(), 1);
  config.model.scale_scores = true;
  EXPECT_EQ(scale(), 1 / std::sqrt(20.0));
}

// All pairs of a step, to be changed.
std::vector<HostBatch> batches_of(SmallRun& run) {
  const std::span<const HostBatch> read = run.loader.next();
  return {read.begin(), read.end()};
}

// Fails when the embedding of a text depends on its padding.
TEST(Biencoder, TokensOfPaddingChangeNoLoss) {
  for (const bool shared : {true, false}) {
    Config config = tiny_biencoder();
    config.model.shared_towers = shared;
    SmallRun run(config);
    std::vector<HostBatch> batches = batches_of(run);
    const double before = run.assembly.executor.evaluate(batches)[0].sum;
    int64_t changed = 0;
    for (HostBatch& batch : batches) {
      for (size_t i = 0; i < batch.text_count(); ++i) {
        HostText& text = batch.text(i);
        for (int64_t row = 0; row < text.tokens_count(); ++row) {
          if (row % text.length < text.lengths[static_cast<size_t>(row / text.length)]) continue;
          text.tokens[static_cast<size_t>(row)] = 11;
          ++changed;
        }
      }
    }
    ASSERT_GT(changed, 0);
    EXPECT_EQ(run.assembly.executor.evaluate(batches)[0].sum, before);
  }
}

// Fails when a pair without weight counts in a loss or an accuracy, or when its context is no class
// of the others any more.
TEST(Biencoder, APairWithoutWeightIsStillCompared) {
  Config config = tiny_biencoder();
  config.train.micro_batch = config.train.global_batch = 4;
  SmallRun run(config);
  std::vector<HostBatch> batches = batches_of(run);
  const LossSums all = run.assembly.executor.evaluate(batches);
  batches[0].exclude(2);
  const LossSums left = run.assembly.executor.evaluate(batches);
  for (const size_t loss : {0, 1, 2}) {
    EXPECT_EQ(all[loss].count, 4);
    EXPECT_EQ(left[loss].count, 3);
  }
  EXPECT_LT(left[0].sum, all[0].sum);
  batches[0].text(kContextText).tokens[2 * 7 + 1] += 1;
  EXPECT_NE(run.assembly.executor.evaluate(batches)[0].sum, left[0].sum);
}

// Fails when an accuracy is not in percent, or does not reach all of them with all contexts.
TEST(Biencoder, AccuraciesArePartsOfHundred) {
  Config config = tiny_biencoder();
  config.train.micro_batch = config.train.global_batch = 4;
  config.log.top_k = {"1", "4", "9"};
  SmallRun run(config);
  const LossSums sums = run.assembly.executor.evaluate(run.loader.next());
  const std::set<double> possible{0, 25, 50, 75, 100};
  EXPECT_TRUE(possible.contains(sums[1].mean())) << sums[1].mean();
  EXPECT_EQ(sums[2].mean(), 100);
  EXPECT_EQ(sums[3].mean(), 100);
}

// Fails when texts of one encoder overlap or have a gap on the device, when rows for dropout or the
// rows of first tokens are those of the other text.
TEST(Biencoder, OneEncoderReadsBothTextsAsOne) {
  constexpr int64_t kPairs = 3, kLength = 5;
  HostBatch batch;
  batch.resize(kPairs, query_context_batch(kLength, true));
  const MockDataset samples(29, 7);
  for (int64_t at = 0; at < kPairs; ++at) samples.read(at, batch, at);
  const std::unique_ptr<Device> device = make_device({.kind = DeviceKind::Cpu});
  BatchUploader uploader(*device, batch.block().size(), 1);
  const TextView text = uploader.upload(batch, 0)[0];
  EXPECT_EQ(text.sequences, 2 * kPairs);
  EXPECT_EQ(text.length, kLength);
  const auto values = [&]<class T>(const ConstTensor& t, T) {
    std::vector<T> got(static_cast<size_t>(t.shape.elements()));
    device->download(t.data, got.data(), bytes_of(t));
    return got;
  };
  std::vector<int32_t> tokens = batch.tokens;
  const HostText& second = batch.text(kContextText);
  tokens.insert(tokens.end(), second.tokens.begin(), second.tokens.end());
  EXPECT_EQ(values(text.tokens, int32_t{}), tokens);
  EXPECT_EQ(values(text.pooled, int32_t{}), (std::vector<int32_t>{0, 5, 10, 15, 20, 25}));
  const std::vector<int64_t> rows = values(text.rows, int64_t{});
  EXPECT_EQ(std::set<int64_t>(rows.begin(), rows.end()).size(), rows.size());
  EXPECT_EQ(text.label_weight.shape[0], kPairs);
}

}  // namespace
}  // namespace bev::test
