#include "infer/encoder_pass.h"

#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "comm/thread_communicator.h"
#include "data/batch.h"
#include "data/padded_text.h"
#include "ops/make_device.h"
#include "support/expect_error.h"
#include "unit/infer/tiny_berts.h"

namespace bev {
namespace {

using test::expect_error;
using test::fresh_bert;

constexpr int64_t kVocab = 29;

// Of different lengths and numbers of marks.
std::vector<EncoderInput> some_encoder_inputs() {
  std::vector<EncoderInput> inputs;
  for (int32_t i = 0; i < 7; ++i) {
    EncoderInput input;
    const int32_t size = 2 + i * 5 % 8;
    for (int32_t at = 0; at < size; ++at) input.ids.push_back((3 * i + at * at) % 29);
    for (int32_t at = i % 3; at < size; at += 3) {
      input.marked.push_back(at);
      input.targets.push_back((at + i) % 29);
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

struct EncoderResults {
  std::vector<std::vector<float>> hidden;
  std::vector<std::vector<std::vector<double>>> logits;
  std::vector<std::vector<double>> losses;
};

EncoderResults encoded(LoadedModel& model, const std::vector<EncoderInput>& inputs) {
  EncoderPass pass(model);
  EncoderResults all;
  all.hidden.resize(inputs.size());
  all.logits.resize(inputs.size());
  all.losses.resize(inputs.size());
  int64_t heard = 0;
  const auto on_done = [&](int64_t done) {
    EXPECT_GT(done, heard);
    heard = done;
  };
  pass.hidden(
      inputs,
      [&](size_t input, std::span<const float> hidden) {
        all.hidden[input].assign(hidden.begin(), hidden.end());
      },
      on_done);
  EXPECT_EQ(heard, std::ssize(inputs));
  for (size_t i = 0; i < inputs.size(); ++i) {
    all.logits[i].resize(inputs[i].marked.size());
    all.losses[i].resize(inputs[i].marked.size());
  }
  pass.logits(
      inputs,
      [&](size_t input, size_t mark, std::span<const double> logits) {
        all.logits[input][mark].assign(logits.begin(), logits.end());
      },
      [](int64_t) {});
  pass.losses(
      inputs, [&](size_t input, size_t mark, double nats) { all.losses[input][mark] = nats; },
      [](int64_t) {});
  return all;
}

EncoderResults encoded_by_one(const ModelFolder& folder, const std::vector<EncoderInput>& inputs,
                              int64_t batch) {
  LoadedModel model(folder, {.kind = DeviceKind::Reference, .threads = 1}, batch, 9);
  return encoded(model, inputs);
}

void expect_near(const EncoderResults& got, const EncoderResults& expected) {
  for (size_t i = 0; i < expected.losses.size(); ++i) {
    ASSERT_EQ(got.hidden[i].size(), expected.hidden[i].size());
    for (size_t at = 0; at < got.hidden[i].size(); ++at)
      EXPECT_NEAR(got.hidden[i][at], expected.hidden[i][at], 1e-6) << i << " " << at;
    for (size_t mark = 0; mark < expected.losses[i].size(); ++mark) {
      EXPECT_NEAR(got.losses[i][mark], expected.losses[i][mark], 1e-12) << i << " " << mark;
      ASSERT_EQ(got.logits[i][mark].size(), expected.logits[i][mark].size());
      for (size_t id = 0; id < got.logits[i][mark].size(); ++id)
        EXPECT_NEAR(got.logits[i][mark][id], expected.logits[i][mark][id], 1e-12);
    }
  }
}

// Fails when a text sees the padding of its batch, or results land at another text.
TEST(EncoderPass, PaddingAndNeighboursChangeNothing) {
  const std::vector<EncoderInput> inputs = some_encoder_inputs();
  for (const NormPlacement placement : {NormPlacement::Pre, NormPlacement::Post}) {
    const ModelFolder folder = fresh_bert(placement);
    const EncoderResults alone = encoded_by_one(folder, inputs, 1);
    for (const int64_t batch : {2, 3, 16})
      expect_near(encoded_by_one(folder, inputs, batch), alone);
  }
}

// Fails when it computes something else than training's own forward.
TEST(EncoderPass, LossesAreThoseOfTraining) {
  for (const NormPlacement placement : {NormPlacement::Pre, NormPlacement::Post}) {
    ModelFolder folder = fresh_bert(placement);
    folder.config.data.mask_prob = 1;
    LoadedModel model(folder, {.kind = DeviceKind::Reference, .threads = 1}, 1, 9);
    const std::vector<EncoderInput> inputs = some_encoder_inputs();
    const EncoderResults results = encoded(model, inputs);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const EncoderInput& input = inputs[i];
      const auto length = std::ssize(input.ids);
      HostBatch batch;
      batch.resize(1, masked_batch(length, std::ssize(input.marked)));
      batch.lengths[0] = static_cast<int32_t>(length);
      batch.pooled[0] = batch.label[0] = 0;
      batch.label_weight[0] = 0;
      double expected = 0;
      for (size_t at = 0; at < input.ids.size(); ++at) {
        batch.tokens[at] = input.ids[at];
        batch.positions[at] = static_cast<int32_t>(at);
        batch.rows[at] = static_cast<int64_t>(at);
        batch.types[at] = 0;
      }
      for (size_t mark = 0; mark < input.marked.size(); ++mark) {
        batch.marked[mark] = input.marked[mark];
        batch.targets[mark] = input.targets[mark];
        batch.weight[mark] = 1;
        expected += results.losses[i][mark];
      }
      EXPECT_NEAR(model.executor().evaluate({&batch, 1}).front().sum, expected, 1e-12);
    }
  }
}

// Fails when padding of the vocabulary takes part in the softmax.
TEST(EncoderPass, LossesAreOverTheVocabularyAlone) {
  const std::vector<EncoderInput> inputs = some_encoder_inputs();
  const EncoderResults results = encoded_by_one(fresh_bert(NormPlacement::Pre, 16), inputs, 3);
  for (size_t i = 0; i < inputs.size(); ++i)
    for (size_t mark = 0; mark < inputs[i].marked.size(); ++mark) {
      const std::vector<double>& logits = results.logits[i][mark];
      ASSERT_EQ(std::ssize(logits), kVocab);
      double sum = 0;
      for (const double logit : logits) sum += std::exp(logit);
      EXPECT_NEAR(results.losses[i][mark],
                  std::log(sum) - logits[static_cast<size_t>(inputs[i].targets[mark])], 1e-12);
    }
}

// Fails when a rank of two reads the other's part of the vocabulary, or leaves out a sum.
TEST(EncoderPass, TwoTensorRanksComputeWhatOneDoes) {
  const std::vector<EncoderInput> inputs = some_encoder_inputs();
  for (const int64_t multiple : {2, 16}) {
    const ModelFolder folder = fresh_bert(NormPlacement::Post, multiple);
    const EncoderResults one = encoded_by_one(folder, inputs, 3);
    InferenceSetup use{
        .device = {.kind = DeviceKind::Reference, .threads = 1}, .sequences = 3, .length = 9};
    use.parallel.ranks = use.parallel.tensor = 2;
    std::mutex mutex;
    run_ranks(2, std::chrono::seconds(60), [&](Communicator& world) {
      const auto device = make_device(use.device);
      LoadedModel model(folder, use, *device, world);
      const EncoderResults two = encoded(model, inputs);
      const std::lock_guard lock(mutex);
      expect_near(two, one);
    });
  }
}

TEST(EncoderPass, RefusesIdsBeyondTheVocabulary) {
  const ModelFolder folder = fresh_bert();
  LoadedModel model(folder, {.kind = DeviceKind::Reference, .threads = 1}, 1, 9);
  EncoderPass pass(model);
  const std::vector<EncoderInput> inputs{{.ids = {2, 29, 3}}};
  expect_error(ErrorKind::Data, "the id 29, but the vocabulary of the model has 29 ids",
               [&] { pass.hidden(inputs, [](size_t, std::span<const float>) {}, [](int64_t) {}); });
}

// Fails when a text is embedded by the other tower, without its projection, or at another place.
TEST(EncoderPass, EmbeddingsOfABiencoderAreThoseOfTraining) {
  constexpr int64_t kPairs = 3;
  for (const bool shared : {true, false}) {
    ModelFolder folder = fresh_bert(NormPlacement::Pre);
    ModelConfig& m = folder.config.model;
    m.family = ModelFamily::Biencoder;
    m.shared_towers = shared;
    m.projection = shared ? 0 : 5;
    LoadedModel model(folder, {.kind = DeviceKind::Reference, .threads = 1}, kPairs, 9);
    EncoderPass pass(model);
    ASSERT_TRUE(pass.is_biencoder());
    const std::vector<EncoderInput> inputs = some_encoder_inputs();
    std::vector<std::vector<float>> rows(2 * kPairs);
    HostBatch batch;
    batch.resize(kPairs, model.placed().spec.batch);
    for (const int tower : {kQueryText, kContextText}) {
      const auto first = static_cast<size_t>(tower * kPairs);
      pass.embeddings(
          std::span(inputs).subspan(first, kPairs), tower,
          [&](size_t input, std::span<const float> row) {
            rows[first + input].assign(row.begin(), row.end());
          },
          [](int64_t) {});
      for (size_t at = 0; at < kPairs; ++at)
        put_padded(inputs[first + at].ids, 0, batch.text(static_cast<size_t>(tower)),
                   static_cast<int64_t>(at));
    }
    for (int64_t at = 0; at < kPairs; ++at) batch.number_rows(at, at);
    double expected = 0;
    for (size_t query = 0; query < kPairs; ++query) {
      double sum = 0, own = 0;
      for (size_t context = 0; context < kPairs; ++context) {
        double score = 0;
        for (size_t i = 0; i < static_cast<size_t>(pass.embedding_width()); ++i)
          score +=
              static_cast<double>(rows[query][i]) * static_cast<double>(rows[kPairs + context][i]);
        sum += std::exp(score);
        if (context == query) own = score;
      }
      expected += std::log(sum) - own;
    }
    EXPECT_NEAR(model.executor().evaluate({&batch, 1}).front().sum, expected, 1e-4);
  }
}

}  // namespace
}  // namespace bev
