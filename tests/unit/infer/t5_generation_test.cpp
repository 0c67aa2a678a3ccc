// Generation of an encoder-decoder with its cache against the forward pass of training.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>

#include "comm/thread_communicator.h"
#include "infer/beam_search.h"
#include "infer/continuous_batcher.h"
#include "infer/engine_runner.h"
#include "infer/source_text.h"
#include "ops/make_device.h"
#include "support/expect_error.h"
#include "unit/infer/stored_t5.h"

namespace bev {
namespace {

using Ids = std::vector<int32_t>;
using test::kT5Decoder;
using test::kT5Source;

constexpr int32_t kStart = 2;

// The source as the model reads it: with padding if the decoder sees that.
SourceText source_of(const test::StoredT5& stored, const Ids& ids) {
  GenerationRequest request{.prompt = ids};
  SourceFormat(stored.folder(), kT5Source).apply(request);
  return request.source;
}

struct T5Row {
  SourceText source;
  Ids pages, source_pages;
  Ids tokens{kStart};

  EngineRow row() const {
    return {.tokens = tokens,
            .pages = pages,
            .choice = {.temperature = 0},
            .source = source.ids,
            .source_length = source.length,
            .source_pages = source_pages};
  }
  Ids source_ids() const { return {source.ids.begin(), source.ids.begin() + source.length}; }
};

std::vector<EngineRow> rows_with_sources(const std::vector<T5Row>& rows) {
  std::vector<EngineRow> all;
  for (const T5Row& row : rows) all.push_back(row.row());
  return all;
}

void expect_as_trained(LoadedModel& whole, std::span<const SampledToken> chosen,
                       std::vector<T5Row>& rows) {
  ASSERT_EQ(chosen.size(), rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::vector<double> expected =
        test::next_logprobs(whole, rows[i].source_ids(), rows[i].tokens);
    const auto best = std::max_element(expected.begin(), expected.end());
    EXPECT_EQ(chosen[i].id, best - expected.begin()) << i;
    EXPECT_NEAR(chosen[i].logprob, *best, 1e-12) << i;
    rows[i].tokens.push_back(chosen[i].id);
  }
}

// Sources of unequal lengths, in pages of 2 that are scattered.
std::vector<T5Row> three_rows(const test::StoredT5& stored) {
  return {{source_of(stored, {3, 1, 28}), {7, 2, 13, 0}, {5, 20, 21, 22}},
          {source_of(stored, {28, 4, 4, 9, 11, 7, 0}), {1, 12, 3, 10}, {6, 14, 19, 4}},
          {source_of(stored, {17}), {8, 11, 9, 15}, {16, 17, 18, 23}}};
}

TEST(T5Generation, AgreesWithTheForwardPassOfTraining) {
  for (const test::TinyModel& tiny : test::tiny_t5s()) {
    SCOPED_TRACE(tiny.name);
    const test::StoredT5 stored(tiny.config);
    LoadedModel whole = stored.load(), model = stored.load();
    InferenceEngine decoder(
        model, {.rows = 3, .length = kT5Decoder, .source = kT5Source, .pages = 24, .page = 2});
    std::vector<T5Row> rows = three_rows(stored);
    decoder.prefill(rows_with_sources(rows));
    expect_as_trained(whole, decoder.collect(), rows);
    for (int step = 0; step < 2; ++step) {
      decoder.decode(rows_with_sources(rows));
      expect_as_trained(whole, decoder.collect(), rows);
    }
    // Rows come, go and change places.
    std::swap(rows[0], rows[2]);
    rows.pop_back();
    decoder.decode(rows_with_sources(rows));
    decoder.decode_ahead(rows_with_sources(rows));
    expect_as_trained(whole, decoder.collect(), rows);
    expect_as_trained(whole, decoder.collect(), rows);
  }
}

using Steps = std::vector<std::vector<SampledToken>>;

Steps continued(const test::StoredT5& stored, int ranks, bool is_led) {
  Steps steps;
  InferenceSetup use{.device = {.kind = DeviceKind::Reference, .threads = 1}, .length = kT5Source};
  use.parallel.ranks = use.parallel.tensor = ranks;
  run_ranks(ranks, std::chrono::minutes(1), [&](Communicator& world) {
    const std::unique_ptr<Device> device = make_device(use.device);
    LoadedModel model(stored.folder(), use, *device, world);
    InferenceEngine decoder(
        model, {.rows = 3, .length = kT5Decoder, .source = kT5Source, .pages = 24, .page = 2});
    if (is_led && world.rank() != 0) return decoder.follow_leader();
    if (is_led) decoder.lead_ranks();
    std::vector<T5Row> rows = three_rows(stored);
    Steps here;
    decoder.prefill(rows_with_sources(rows));
    for (int step = 0; step < 4; ++step) {
      const std::span<const SampledToken> chosen = decoder.collect();
      here.emplace_back(chosen.begin(), chosen.end());
      for (size_t i = 0; i < rows.size(); ++i) rows[i].tokens.push_back(chosen[i].id);
      decoder.decode(rows_with_sources(rows));
    }
    decoder.collect();
    EXPECT_EQ(decoder.logits().size(), 3U * 29);
    if (world.rank() == 0) steps = here;
  });
  return steps;
}

TEST(T5Generation, TensorRanksAgreeWithOne) {
  for (const test::TinyModel& tiny : test::tiny_t5s()) {
    SCOPED_TRACE(tiny.name);
    const test::StoredT5 stored(tiny.config);
    const Steps alone = continued(stored, 1, false);
    for (const bool is_led : {false, true}) {
      const Steps together = continued(stored, 2, is_led);
      ASSERT_EQ(together.size(), alone.size());
      for (size_t step = 0; step < alone.size(); ++step)
        for (size_t row = 0; row < 3; ++row) {
          EXPECT_EQ(together[step][row].id, alone[step][row].id);
          EXPECT_NEAR(together[step][row].logprob, alone[step][row].logprob, 1e-12);
        }
    }
  }
}

TEST(T5Generation, RunsOnTensorRanksOnly) {
  const test::StoredT5 stored(test::tiny_t5());
  InferenceSetup use{.device = {.kind = DeviceKind::Reference, .threads = 1}, .length = kT5Source};
  use.parallel.ranks = use.parallel.pipeline = 2;
  test::expect_error(ErrorKind::Usage, "--pipeline 2: a T5 generates on tensor ranks only", [&] {
    run_ranks(2, std::chrono::minutes(1), [&](Communicator& world) {
      const std::unique_ptr<Device> device = make_device(use.device);
      LoadedModel model(stored.folder(), use, *device, world);
      InferenceEngine(model, {.rows = 1, .length = kT5Decoder, .source = kT5Source});
    });
  });
}

// Steps of every size have the memory that was planned, which is exact.
TEST(T5Generation, EveryShapeHasItsMemory) {
  const test::StoredT5 stored(test::tiny_huggingface_t5());
  LoadedModel model = stored.load(DeviceKind::Cpu);
  const int64_t page = kT5Decoder;
  InferenceEngine decoder(
      model,
      {.rows = 5, .length = kT5Decoder, .source = kT5Source, .page = page, .prefill_tokens = 30});
  int fitting = 0;
  for (int64_t count = 1; count <= 5; ++count)
    for (int64_t length = 1; length <= kT5Source; ++length) {
      if (!decoder.fits(count, length)) continue;
      ++fitting;
      std::vector<T5Row> rows;
      for (int32_t i = 0; i < count; ++i)
        rows.push_back(
            {source_of(stored, Ids(static_cast<size_t>(length), i)), {2 * i}, {2 * i + 1}});
      decoder.prefill(rows_with_sources(rows));
      decoder.collect();
    }
  EXPECT_EQ(fitting, 5 * 7 - 1);
}

// Requests, with a text in a batch and alone.

struct T5Answer {
  Ids ids;
  std::vector<double> logprobs;
  FinishReason finish = FinishReason::None;
};

TokenSink answer_sink(T5Answer& answer) {
  return [&answer](const TokenEvent& event) {
    if (event.has_token) {
      answer.ids.push_back(event.token.id);
      answer.logprobs.push_back(event.token.logprob);
    }
    answer.finish = event.finish;
  };
}

GenerationRequest request_of(const test::StoredT5& stored, Ids source, int64_t tokens) {
  GenerationRequest request{
      .prompt = std::move(source), .tokens = tokens, .seed = 5, .score_prompt = true};
  SourceFormat format(stored.folder(), kT5Source);
  format.special.begin = kStart;
  format.apply(request);
  return request;
}

void step_to_end(ContinuousBatcher& batcher) {
  while (!batcher.is_idle()) batcher.step();
}

T5Answer alone(const test::StoredT5& stored, const GenerationRequest& request) {
  LoadedModel model = stored.load();
  InferenceEngine decoder(model, {.rows = 1, .length = kT5Decoder, .source = kT5Source, .page = 3});
  ContinuousBatcher batcher(decoder);
  T5Answer answer;
  batcher.submit(request, answer_sink(answer));
  step_to_end(batcher);
  return answer;
}

TEST(T5Generation, TextsDoNotDependOnEachOther) {
  for (const test::TinyModel& tiny : test::tiny_t5s()) {
    SCOPED_TRACE(tiny.name);
    const test::StoredT5 stored(tiny.config);
    std::vector<GenerationRequest> requests;
    for (int32_t i = 0; i < 9; ++i) {
      requests.push_back(
          request_of(stored, Ids(static_cast<size_t>(1 + i % 7), i), 1 + (i * 3) % 8));
      requests.back().sample = i;
      SamplingOptions& c = requests.back().choice;
      c.temperature = i % 4 * 0.7;
      c.top_k = i % 3 == 0 ? 5 : 0;
      c.top_p = i % 2 == 0 ? 0.7 : 1;
      c.repetition_penalty = i % 3 == 1 ? 1.7 : 1;
    }
    LoadedModel model = stored.load();
    // Too few pages for all rows.
    InferenceEngine decoder(
        model, {.rows = 4, .length = kT5Decoder, .source = kT5Source, .pages = 14, .page = 3});
    ContinuousBatcher batcher(decoder);
    std::vector<T5Answer> answers(requests.size());
    for (size_t i = 0; i < requests.size(); ++i) {
      ASSERT_EQ(batcher.why_not(requests[i]), "");
      batcher.submit(requests[i], answer_sink(answers[i]));
      if (i % 4 == 3) batcher.step();
    }
    step_to_end(batcher);
    EXPECT_EQ(batcher.free_pages(), 14);
    for (size_t i = 0; i < requests.size(); ++i) {
      const T5Answer expected = alone(stored, requests[i]);
      EXPECT_EQ(answers[i].ids, expected.ids) << i;
      EXPECT_EQ(answers[i].logprobs, expected.logprobs) << i;
      EXPECT_EQ(answers[i].finish, FinishReason::Length);
      EXPECT_EQ(std::ssize(answers[i].ids), requests[i].tokens);
    }
  }
}

TEST(T5Generation, RefusesWhatDoesNotFit) {
  const test::StoredT5 stored(test::tiny_t5());
  LoadedModel model = stored.load();
  InferenceEngine decoder(model, {.rows = 1, .length = kT5Decoder, .source = 5});
  const ContinuousBatcher batcher(decoder);
  EXPECT_EQ(batcher.why_not(request_of(stored, {1, 2, 3, 4, 5}, 8)), "");
  EXPECT_NE(batcher.why_not(request_of(stored, {1, 2, 3, 4, 5, 6}, 8)).find("6 tokens"),
            std::string::npos);
  EXPECT_NE(batcher.why_not(request_of(stored, {1}, 9)), "");
  EXPECT_NE(batcher.why_not(request_of(stored, {29}, 1)).find("id 29"), std::string::npos);
  EXPECT_NE(batcher.why_not(request_of(stored, {}, 1)), "");
  EXPECT_NE(batcher.why_not({.prompt = {1}, .tokens = 1}), "");
  GenerationRequest scored = request_of(stored, {1}, 1);
  EXPECT_FALSE(scored.score_prompt);
  scored.score_prompt = true;
  EXPECT_NE(batcher.why_not(scored), "");
}

// Puts tokens around a text, as the template of a vocabulary does.
class TokensAround final : public Tokenizer {
 public:
  std::unique_ptr<Tokenizer> clone() const override { return std::make_unique<TokensAround>(); }
  void encode(std::string_view text, Ids& ids) override {
    ids.push_back(18);
    plain_.encode(text, ids);
    ids.push_back(19);
  }
  std::string decode(std::span<const int32_t> ids, SpecialIds special) const override {
    return plain_.decode(ids, special);
  }
  std::string token_name(int32_t id) const override { return plain_.token_name(id); }
  int64_t vocab_size() const override { return plain_.vocab_size(); }
  std::optional<int32_t> eod_id() const override { return plain_.eod_id(); }
  std::optional<int32_t> role_id(TokenRole role) const override {
    if (role == TokenRole::Classify) return 18;
    return role == TokenRole::Separate ? std::optional(19) : std::nullopt;
  }

 private:
  NullTokenizer plain_{20, 1};
};

Ids encoded(Tokenizer& tokenizer, std::string_view text, const DecoderIds& special) {
  Ids ids;
  encode_source(text, special, tokenizer, ids);
  return ids;
}

// Fails when the special ids of an imported T5 are lost.
TEST(SourceText, CheckpointsHaveSpecialIds) {
  const test::StoredT5 stored(test::tiny_t5());
  EXPECT_EQ(stored.folder().decoder_ids, DecoderIds());
  const DecoderIds ids{.begin = 4, .end = 5, .pad = 6};
  std::ofstream(stored.folder().weights / kGenerationConfig) << generation_config(ids);
  EXPECT_EQ(stored.folder().decoder_ids, ids);
}

// Hugging Face's decoder begins with the padding, and its sources have an end.
TEST(SourceText, EndsAsInTraining) {
  NullTokenizer plain(20, 1);
  TokensAround around;
  const DecoderIds huggingface{.begin = 0, .end = 1, .pad = 0};
  const DecoderIds megatron{.begin = 18, .end = 19, .pad = 0};
  EXPECT_EQ(encoded(plain, "7 8", huggingface), (Ids{7, 8, 1}));
  EXPECT_EQ(encoded(plain, "7 8 1", huggingface), (Ids{7, 8, 1}));
  EXPECT_EQ(encoded(plain, "", huggingface), (Ids{1}));
  EXPECT_EQ(encoded(around, "7 8", megatron), (Ids{7, 8}));
  EXPECT_EQ(encoded(around, "", megatron), (Ids{}));
}

// Beam search.

// As many beams as tokens: nothing is left out.
TEST(T5Generation, BeamsFindTheLikeliestOfAll) {
  for (const test::TinyModel& tiny : test::tiny_t5s()) {
    SCOPED_TRACE(tiny.name);
    const test::StoredT5 stored(tiny.config);
    LoadedModel whole = stored.load(), model = stored.load();
    InferenceEngine decoder(model,
                            {.rows = 29, .length = kT5Decoder, .source = kT5Source, .page = 2});
    const Ids source{3, 1, 7, 5}, start{kStart};
    const std::vector<Beam> beams =
        beam_search(decoder, start, source_of(stored, source), {.beams = 29, .tokens = 2});
    std::vector<std::pair<double, Ids>> texts;
    const std::vector<double> first = test::next_logprobs(whole, source, start);
    for (int32_t a = 0; a < 29; ++a) {
      const std::vector<double> second = test::next_logprobs(whole, source, {kStart, a});
      for (int32_t b = 0; b < 29; ++b)
        texts.push_back({-first[static_cast<size_t>(a)] - second[static_cast<size_t>(b)], {a, b}});
    }
    std::sort(texts.begin(), texts.end());
    ASSERT_EQ(beams.size(), 29U);
    for (size_t i = 0; i < beams.size(); ++i) {
      EXPECT_EQ(beams[i].ids, texts[i].second) << i;
      EXPECT_NEAR(beams[i].logprob, -texts[i].first, 2e-5) << i;
    }
  }
}

// Beams share and copy pages: each result has the probability of its ids.
TEST(T5Generation, ProbabilitiesOfBeamsAreThoseOfTheTexts) {
  for (const test::TinyModel& tiny : test::tiny_t5s()) {
    SCOPED_TRACE(tiny.name);
    const test::StoredT5 stored(tiny.config);
    LoadedModel whole = stored.load(), model = stored.load();
    for (const int64_t page : {1, 2, 3, 9}) {
      InferenceEngine decoder(model,
                              {.rows = 4, .length = kT5Decoder, .source = kT5Source, .page = page});
      const Ids source{3, 1, 7, 5, 5};
      const std::vector<Beam> beams =
          beam_search(decoder, Ids{kStart}, source_of(stored, source),
                      {.beams = 4, .tokens = 8, .length_penalty = 0.5, .end = 5});
      ASSERT_EQ(beams.size(), 4U);
      for (const Beam& beam : beams) {
        Ids context{kStart}, ids = beam.ids;
        double logprob = 0;
        if (beam.has_ended) ids.push_back(5);
        for (const int32_t id : ids) {
          logprob += test::next_logprobs(whole, source, context)[static_cast<size_t>(id)];
          context.push_back(id);
        }
        EXPECT_NEAR(beam.logprob, logprob, 2e-5);
      }
    }
  }
}

}  // namespace
}  // namespace bev
