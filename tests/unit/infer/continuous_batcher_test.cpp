#include "infer/continuous_batcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "comm/thread_communicator.h"
#include "ops/make_device.h"
#include "unit/infer/stored_model.h"

namespace bev {
namespace {

using Ids = std::vector<int32_t>;

struct Answer {
  Ids ids;
  std::vector<double> logprobs;
  FinishReason finish = FinishReason::None;
  int events = 0;
};

TokenSink into(Answer& answer) {
  return [&answer](const TokenEvent& event) {
    ++answer.events;
    if (event.has_token) {
      answer.ids.push_back(event.token.id);
      answer.logprobs.push_back(event.token.logprob);
    }
    answer.finish = event.finish;
  };
}

void finish(ContinuousBatcher& batcher) {
  while (!batcher.is_idle()) batcher.step();
}

GenerationRequest sampled(Ids prompt, int64_t tokens, int64_t sample = 0) {
  return {.prompt = std::move(prompt), .tokens = tokens, .seed = 5, .sample = sample};
}

Answer alone(const test::StoredModel& stored, const GenerationRequest& request) {
  LoadedModel model = stored.load(1, 9);
  InferenceEngine decoder(model, {.rows = 1, .length = 9, .page = 3});
  ContinuousBatcher batcher(decoder);
  Answer answer;
  batcher.submit(request, into(answer));
  finish(batcher);
  return answer;
}

std::vector<GenerationRequest> many() {
  std::vector<GenerationRequest> requests;
  for (int32_t i = 0; i < 11; ++i) {
    Ids prompt(static_cast<size_t>(1 + i % 5), i);
    requests.push_back(sampled(prompt, 1 + (i * 3) % 5, i));
    SamplingOptions& c = requests.back().choice;
    c.temperature = i % 4 * 0.7;
    c.top_k = i % 3 == 0 ? 5 : 0;
    c.top_p = i % 2 == 0 ? 0.7 : 1;
    c.top_p_decay = i % 5 == 0 ? 0.9 : 1;
    c.min_p = i % 7 == 0 ? 0.05 : 0;
    c.repetition_penalty = i % 3 == 1 ? 1.7 : 1;
  }
  return requests;
}

// A text alone is the same text in a batch, to the bit, whatever comes and goes beside it.
TEST(ContinuousBatcher, TextsDoNotDependOnEachOther) {
  for (const Config& config : {test::tiny_gpt(), test::tiny_llama()}) {
    const test::StoredModel stored(config);
    const std::vector<GenerationRequest> requests = many();
    LoadedModel model = stored.load(1, 9);
    for (const int64_t rows : {3, 4, 16}) {
      // Too few pages for all rows.
      InferenceEngine decoder(model, {.rows = rows, .length = 9, .pages = 8, .page = 3});
      ContinuousBatcher batcher(decoder);
      std::vector<Answer> answers(requests.size());
      for (size_t i = 0; i < requests.size(); ++i) {
        batcher.submit(requests[i], into(answers[i]));
        if (i % 4 == 3) batcher.step();
      }
      finish(batcher);
      EXPECT_EQ(batcher.free_pages(), 8);
      for (size_t i = 0; i < requests.size(); ++i) {
        const Answer expected = alone(stored, requests[i]);
        EXPECT_EQ(answers[i].ids, expected.ids) << i;
        EXPECT_EQ(answers[i].logprobs, expected.logprobs) << i;
        EXPECT_EQ(answers[i].finish, FinishReason::Length);
        EXPECT_EQ(std::ssize(answers[i].ids), requests[i].tokens);
      }
    }
  }
}

// Draws are keyed by seed, sample and position.
TEST(ContinuousBatcher, SeedsAndSamplesDiffer) {
  const test::StoredModel stored;
  const Answer first = alone(stored, sampled({3, 1}, 7, 0));
  EXPECT_EQ(alone(stored, sampled({3, 1}, 7, 0)).ids, first.ids);
  EXPECT_NE(alone(stored, sampled({3, 1}, 7, 1)).ids, first.ids);
  GenerationRequest other = sampled({3, 1}, 7, 0);
  other.seed = 6;
  EXPECT_NE(alone(stored, other).ids, first.ids);
}

TEST(ContinuousBatcher, EndsWithTheEnd) {
  const test::StoredModel stored;
  const Answer free = alone(stored, sampled({3, 1}, 7));
  ASSERT_EQ(free.ids.size(), 7u);
  GenerationRequest request = sampled({3, 1}, 7);
  request.end = free.ids[4];
  const auto first = std::find(free.ids.begin(), free.ids.end(), request.end);
  const Answer ended = alone(stored, request);
  EXPECT_EQ(ended.ids, Ids(free.ids.begin(), first));
  EXPECT_EQ(ended.finish, FinishReason::End);
}

TEST(ContinuousBatcher, CancelledTextsMakeRoom) {
  const test::StoredModel stored;
  LoadedModel model = stored.load(1, 9);
  InferenceEngine decoder(model, {.rows = 2, .length = 9, .page = 3});
  ContinuousBatcher batcher(decoder);
  Answer first, second, third;
  const int64_t number = batcher.submit(sampled({3}, 8), into(first));
  batcher.submit(sampled({4}, 8), into(second));
  batcher.submit(sampled({5}, 8), into(third));
  for (int i = 0; i < 3; ++i) batcher.step();
  EXPECT_EQ(batcher.waiting(), 1u);
  const size_t heard = first.ids.size();
  EXPECT_GT(heard, 0u);
  batcher.cancel(number);
  batcher.cancel(number);
  batcher.cancel(12345);
  finish(batcher);
  EXPECT_EQ(first.ids.size(), heard);
  EXPECT_EQ(second.ids, alone(stored, sampled({4}, 8)).ids);
  EXPECT_EQ(third.ids, alone(stored, sampled({5}, 8)).ids);
  EXPECT_EQ(batcher.free_pages(), decoder.limits().pages);
}

// From inside a sink, also of the only text.
TEST(ContinuousBatcher, SinksMayCancel) {
  const test::StoredModel stored;
  LoadedModel model = stored.load(1, 9);
  InferenceEngine decoder(model, {.rows = 2, .length = 9, .page = 3});
  ContinuousBatcher batcher(decoder);
  int heard = 0;
  int64_t number = 0;
  GenerationRequest request = sampled({3, 2, 1}, 6);
  number = batcher.submit(request, [&](const TokenEvent&) {
    if (++heard == 2) batcher.cancel(number);
  });
  finish(batcher);
  EXPECT_EQ(heard, 2);
  request.score_prompt = true;
  number = batcher.submit(request, [&](const TokenEvent&) { batcher.cancel(number); });
  finish(batcher);
  EXPECT_EQ(batcher.free_pages(), decoder.limits().pages);
}

TEST(ContinuousBatcher, PromptsAndAlternatives) {
  const test::StoredModel stored;
  LoadedModel model = stored.load(1, 9);
  InferenceEngine decoder(model, {.rows = 2, .length = 9, .page = 3});
  ContinuousBatcher batcher(decoder);
  GenerationRequest request = sampled({3, 2, 1}, 2);
  request.choice.temperature = 0;
  request.alternatives = 3;
  request.score_prompt = true;
  std::vector<TokenEvent> events;
  batcher.submit(request, [&](const TokenEvent& event) { events.push_back(event); });
  finish(batcher);
  ASSERT_EQ(events.size(), 3u);
  ASSERT_EQ(events[0].prompt.size(), 2u);
  EXPECT_EQ(events[0].prompt[0].id, 2);
  for (size_t i = 1; i < 3; ++i) {
    ASSERT_EQ(events[i].alternatives.size(), 3u);
    EXPECT_EQ(events[i].alternatives[0].id, events[i].token.id);
    EXPECT_NEAR(events[i].alternatives[0].logprob, events[i].token.logprob, 1e-5);
    EXPECT_LE(events[i].alternatives[1].logprob, events[i].alternatives[0].logprob);
  }
  request.tokens = 0;
  events.clear();
  batcher.submit(request, [&](const TokenEvent& event) { events.push_back(event); });
  finish(batcher);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].finish, FinishReason::Length);
  EXPECT_EQ(events[0].prompt.size(), 2u);
}

TEST(ContinuousBatcher, SaysWhyNot) {
  const test::StoredModel stored;
  LoadedModel model = stored.load(1, 9);
  InferenceEngine decoder(model, {.rows = 2, .length = 9, .pages = 2, .page = 3});
  const ContinuousBatcher batcher(decoder);
  EXPECT_EQ(batcher.why_not(sampled({1}, 5)), "");
  EXPECT_NE(batcher.why_not(sampled({}, 5)), "");
  EXPECT_NE(batcher.why_not(sampled({1}, 9)).find("9 is what fits"), std::string::npos);
  EXPECT_NE(batcher.why_not(sampled({1}, 8)).find("pages"), std::string::npos);
  EXPECT_NE(batcher.why_not(sampled({29}, 1)), "");
  EXPECT_NE(batcher.why_not(sampled({-1}, 1)), "");
  GenerationRequest request = sampled({1}, 1);
  request.choice.temperature = std::nan("");
  EXPECT_NE(batcher.why_not(request), "");
}

// One rank has the requests, the others do what it does.
TEST(ContinuousBatcher, LeadsOtherRanks) {
  const test::StoredModel stored;
  const std::vector<GenerationRequest> requests = many();
  for (const auto& [tensor, pipeline] : {std::pair{2, 1}, {1, 2}, {2, 2}}) {
    InferenceSetup use{.device = {.kind = DeviceKind::Reference, .threads = 1}, .length = 9};
    use.parallel.ranks = tensor * pipeline;
    use.parallel.tensor = tensor;
    use.parallel.pipeline = pipeline;
    std::vector<Answer> answers(requests.size());
    run_ranks(tensor * pipeline, std::chrono::minutes(1), [&](Communicator& world) {
      const std::unique_ptr<Device> device = make_device(use.device);
      LoadedModel model(stored.folder(), use, *device, world);
      InferenceEngine decoder(model, {.rows = 4, .length = 9, .page = 3});
      if (world.rank() != 0) {
        decoder.follow_leader();
        return;
      }
      decoder.lead_ranks();
      decoder.ping_followers();
      ContinuousBatcher batcher(decoder);
      for (size_t i = 0; i < requests.size(); ++i) {
        GenerationRequest request = requests[i];
        request.score_prompt = i == 3;
        request.alternatives = i == 5 ? 2 : 0;
        batcher.submit(request, into(answers[i]));
      }
      finish(batcher);
    });
    for (size_t i = 0; i < requests.size(); ++i)
      EXPECT_EQ(answers[i].ids, alone(stored, requests[i]).ids) << i;
  }
}

}  // namespace
}  // namespace bev
