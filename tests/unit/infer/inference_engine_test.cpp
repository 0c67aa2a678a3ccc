// What the decoder computes with its cache is what the model computes of whole sequences.
#include "infer/inference_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "comm/thread_communicator.h"
#include "ops/make_device.h"
#include "unit/infer/stored_model.h"

namespace bev {
namespace {

using Ids = std::vector<int32_t>;

constexpr SamplingOptions kGreedy{.temperature = 0};

using test::next_logprobs;

struct Row {
  Ids tokens, pages;
  EngineRow row() const { return {.tokens = tokens, .pages = pages, .choice = kGreedy}; }
};

std::vector<EngineRow> rows_of(const std::vector<Row>& rows) {
  std::vector<EngineRow> all;
  for (const Row& row : rows) all.push_back(row.row());
  return all;
}

// Appends what was chosen after checking it against the model without a cache.
void expect_likeliest(LoadedModel& whole, std::span<const SampledToken> chosen,
                      std::vector<Row>& rows) {
  ASSERT_EQ(chosen.size(), rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::vector<double> expected = next_logprobs(whole, rows[i].tokens);
    const auto best = std::max_element(expected.begin(), expected.end());
    EXPECT_EQ(chosen[i].id, best - expected.begin()) << i;
    EXPECT_NEAR(chosen[i].logprob, *best, 1e-13) << i;
    rows[i].tokens.push_back(chosen[i].id);
  }
}

Config windowed() {
  Config config = test::tiny_llama();
  config.model.window = 3;
  return config;
}

// Prompts of different lengths, in pages that are scattered and shared by nobody.
TEST(InferenceEngine, AgreesWithWholeSequences) {
  for (const Config& config : {test::tiny_gpt(), test::tiny_llama(), windowed()}) {
    const test::StoredModel stored(config);
    LoadedModel whole = stored.load(1, 9), model = stored.load(1, 9);
    InferenceEngine decoder(model, {.rows = 3, .length = 9, .pages = 14, .page = 2});
    std::vector<Row> rows{
        {{3, 1}, {7, 2, 13, 0, 5}}, {{28, 4, 4, 9, 11}, {1, 12, 3, 10, 6}}, {{17}, {8, 4, 11, 9}}};
    decoder.prefill(rows_of(rows));
    expect_likeliest(whole, decoder.collect(), rows);
    for (int step = 0; step < 2; ++step) {
      decoder.decode(rows_of(rows));
      expect_likeliest(whole, decoder.collect(), rows);
    }
    // The step behind is issued before this one is collected.
    decoder.decode(rows_of(rows));
    decoder.decode_ahead(rows_of(rows));
    expect_likeliest(whole, decoder.collect(), rows);
    expect_likeliest(whole, decoder.collect(), rows);
  }
}

// Rows may come, go and change places: what counts is in the cache.
TEST(InferenceEngine, RowsChangePlaces) {
  const test::StoredModel stored;
  LoadedModel whole = stored.load(1, 9), model = stored.load(1, 9);
  InferenceEngine decoder(model, {.rows = 2, .length = 9, .page = 4});
  std::vector<Row> first{{{3, 1}, {0, 1, 2}}}, second{{{5, 6, 7}, {3, 4, 5}}};
  decoder.prefill(rows_of(first));
  expect_likeliest(whole, decoder.collect(), first);
  decoder.prefill(rows_of(second));
  expect_likeliest(whole, decoder.collect(), second);
  std::vector<Row> both{second[0], first[0]};
  decoder.decode(rows_of(both));
  expect_likeliest(whole, decoder.collect(), both);
  both.erase(both.begin());
  decoder.decode(rows_of(both));
  expect_likeliest(whole, decoder.collect(), both);
}

TEST(InferenceEngine, CopiedPages) {
  const test::StoredModel stored;
  LoadedModel whole = stored.load(1, 9), model = stored.load(1, 9);
  InferenceEngine decoder(model, {.rows = 2, .length = 9, .page = 4, .prefill_tokens = 9});
  std::vector<Row> one{{{3, 1, 4, 1, 5}, {0, 1, 2}}};
  decoder.prefill(rows_of(one));
  expect_likeliest(whole, decoder.collect(), one);
  // The full page is shared, the other one copied.
  decoder.copy_page(1, 4);
  std::vector<Row> two{one[0], {one[0].tokens, {0, 4, 5}}};
  two[1].tokens.back() = (two[0].tokens.back() + 1) % 29;
  for (int step = 0; step < 3; ++step) {
    decoder.decode(rows_of(two));
    expect_likeliest(whole, decoder.collect(), two);
  }
}

TEST(InferenceEngine, ScoresPrompts) {
  const test::StoredModel stored;
  LoadedModel whole = stored.load(1, 9), model = stored.load(1, 9);
  InferenceEngine decoder(model, {.rows = 2, .length = 9});
  const std::vector<Row> rows{{{3, 1, 4, 1, 5}, {}}, {{28, 2}, {}}};
  const std::vector<double> scores = decoder.score(rows_of(rows));
  ASSERT_EQ(scores.size(), 5u);
  size_t at = 0;
  for (const Row& row : rows)
    for (size_t i = 1; i < row.tokens.size(); ++i) {
      const Ids context(row.tokens.begin(), row.tokens.begin() + static_cast<ptrdiff_t>(i));
      const auto id = static_cast<size_t>(row.tokens[i]);
      EXPECT_NEAR(scores[at++], next_logprobs(whole, context)[id], 1e-13);
    }
}

TEST(InferenceEngine, LogitsOfTheCollectedStep) {
  const test::StoredModel stored;
  LoadedModel whole = stored.load(1, 9), model = stored.load(1, 9);
  InferenceEngine decoder(model, {.rows = 2, .length = 9});
  const std::vector<Row> rows{{{3, 1}, {0}}, {{5}, {1}}};
  decoder.prefill(rows_of(rows));
  decoder.collect();
  const std::vector<float> logits = decoder.logits();
  ASSERT_EQ(logits.size(), 2u * 29);
  for (size_t row = 0; row < 2; ++row) {
    const std::vector<double> all = test::all_logits(whole, rows[row].tokens);
    for (size_t id = 0; id < 29; ++id)
      EXPECT_EQ(logits[row * 29 + id], static_cast<float>(all[all.size() - 29 + id]));
  }
}

// The tokens that `prompts` are continued with, greedily, by the ranks of a layout.
std::vector<std::vector<SampledToken>> continued(const test::StoredModel& stored, int tensor,
                                                 int pipeline) {
  std::vector<std::vector<SampledToken>> steps;
  InferenceSetup use{.device = {.kind = DeviceKind::Reference, .threads = 1}, .length = 9};
  use.parallel.ranks = tensor * pipeline;
  use.parallel.tensor = tensor;
  use.parallel.pipeline = pipeline;
  run_ranks(tensor * pipeline, std::chrono::minutes(1), [&](Communicator& world) {
    const std::unique_ptr<Device> device = make_device(use.device);
    LoadedModel model(stored.folder(), use, *device, world);
    InferenceEngine decoder(model, {.rows = 2, .length = 9, .page = 2});
    std::vector<Row> rows{{{3, 1}, {7, 2, 1, 0}}, {{28, 4, 4}, {3, 6, 4, 5}}};
    std::vector<std::vector<SampledToken>> here;
    decoder.prefill(rows_of(rows));
    for (int step = 0; step < 4; ++step) {
      const std::span<const SampledToken> chosen = decoder.collect();
      here.emplace_back(chosen.begin(), chosen.end());
      for (size_t i = 0; i < rows.size(); ++i) rows[i].tokens.push_back(chosen[i].id);
      decoder.decode(rows_of(rows));
    }
    decoder.collect();
    EXPECT_EQ(decoder.logits().size(), 2u * 29);
    if (world.rank() == 0) steps = here;
  });
  return steps;
}

TEST(InferenceEngine, LayoutsAgree) {
  for (const Config& config : {test::tiny_gpt(), test::tiny_llama()}) {
    const test::StoredModel stored(config);
    const auto alone = continued(stored, 1, 1);
    for (const auto& [tensor, pipeline] : {std::pair{2, 1}, {1, 2}, {2, 2}}) {
      const auto together = continued(stored, tensor, pipeline);
      ASSERT_EQ(together.size(), alone.size());
      for (size_t step = 0; step < alone.size(); ++step)
        for (size_t row = 0; row < 2; ++row) {
          EXPECT_EQ(together[step][row].id, alone[step][row].id);
          EXPECT_NEAR(together[step][row].logprob, alone[step][row].logprob, 1e-12);
        }
    }
  }
}

}  // namespace
}  // namespace bev
