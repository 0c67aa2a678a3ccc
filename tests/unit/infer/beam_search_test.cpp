#include "infer/beam_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "unit/infer/stored_model.h"

namespace bev {
namespace {

using Ids = std::vector<int32_t>;

// Of every continuation of a prompt by so many tokens, the log-probability.
struct ScoredText {
  Ids ids;
  double logprob;
};

// All texts of two tokens, best first.
std::vector<ScoredText> all_pairs(LoadedModel& whole, const Ids& prompt) {
  std::vector<ScoredText> texts;
  const std::vector<double> first = test::next_logprobs(whole, prompt);
  for (int32_t a = 0; a < 29; ++a) {
    Ids context = prompt;
    context.push_back(a);
    const std::vector<double> second = test::next_logprobs(whole, context);
    for (int32_t b = 0; b < 29; ++b)
      texts.push_back({{a, b}, first[static_cast<size_t>(a)] + second[static_cast<size_t>(b)]});
  }
  std::sort(texts.begin(), texts.end(),
            [](const ScoredText& a, const ScoredText& b) { return a.logprob > b.logprob; });
  return texts;
}

// As many beams as tokens: nothing is left out.
TEST(BeamSearch, FindsTheLikeliestOfAll) {
  const test::StoredModel stored;
  LoadedModel whole = stored.load(1, 9), model = stored.load(1, 9);
  InferenceEngine decoder(model, {.rows = 29, .length = 9, .page = 2});
  const Ids prompt{3, 1, 7};
  const std::vector<Beam> beams = beam_search(decoder, prompt, {.beams = 29, .tokens = 2});
  const std::vector<ScoredText> texts = all_pairs(whole, prompt);
  ASSERT_EQ(beams.size(), 29u);
  for (size_t i = 0; i < beams.size(); ++i) {
    EXPECT_EQ(beams[i].ids, texts[i].ids) << i;
    EXPECT_NEAR(beams[i].logprob, texts[i].logprob, 1e-5) << i;
    EXPECT_NEAR(beams[i].score, beams[i].logprob / 2, 1e-12);
    EXPECT_FALSE(beams[i].has_ended);
  }
}

// Pages are shared and copied on the way: each result has the probability of its ids.
TEST(BeamSearch, ProbabilitiesAreThoseOfTheTexts) {
  for (const Config& config : {test::tiny_gpt(), test::tiny_llama()}) {
    const test::StoredModel stored(config);
    LoadedModel whole = stored.load(1, 9), model = stored.load(1, 9);
    for (const int64_t page : {1, 2, 3, 9}) {
      InferenceEngine decoder(model, {.rows = 4, .length = 9, .page = page});
      const Ids prompt{3, 1};
      const std::vector<Beam> beams =
          beam_search(decoder, prompt, {.beams = 4, .tokens = 7, .length_penalty = 0.5, .end = 5});
      ASSERT_EQ(beams.size(), 4u);
      for (const Beam& beam : beams) {
        Ids context = prompt;
        double logprob = 0;
        Ids ids = beam.ids;
        if (beam.has_ended) ids.push_back(5);
        for (const int32_t id : ids) {
          logprob += test::next_logprobs(whole, context)[static_cast<size_t>(id)];
          context.push_back(id);
        }
        EXPECT_NEAR(beam.logprob, logprob, 1e-5);
        EXPECT_NEAR(beam.score, beam.logprob / std::sqrt(static_cast<double>(ids.size())), 1e-12);
      }
      EXPECT_TRUE(std::is_sorted(beams.begin(), beams.end(),
                                 [](const Beam& a, const Beam& b) { return a.score > b.score; }));
    }
  }
}

// A text that ends is a result, and the search goes on only while others may become better.
TEST(BeamSearch, EndsCount) {
  const test::StoredModel stored;
  LoadedModel whole = stored.load(1, 9), model = stored.load(1, 9);
  InferenceEngine decoder(model, {.rows = 2, .length = 9});
  const Ids prompt{3, 1};
  const std::vector<double> first = test::next_logprobs(whole, prompt);
  const auto best =
      static_cast<int32_t>(std::max_element(first.begin(), first.end()) - first.begin());
  const std::vector<Beam> beams =
      beam_search(decoder, prompt, {.beams = 1, .tokens = 5, .length_penalty = 0, .end = best});
  ASSERT_EQ(beams.size(), 1u);
  EXPECT_TRUE(beams[0].has_ended);
  EXPECT_TRUE(beams[0].ids.empty());
  EXPECT_NEAR(beams[0].logprob, first[static_cast<size_t>(best)], 1e-5);
}

TEST(BeamSearch, EndsWhenNobodyWaits) {
  const test::StoredModel stored;
  LoadedModel model = stored.load(1, 9);
  InferenceEngine decoder(model, {.rows = 2, .length = 9});
  int asked = 0;
  const std::vector<Beam> beams =
      beam_search(decoder, Ids{3, 1}, {.beams = 2, .tokens = 7}, [&] { return ++asked < 3; });
  EXPECT_EQ(asked, 3);
  ASSERT_EQ(beams.size(), 2u);
  EXPECT_EQ(beams[0].ids.size(), 3u);
}

TEST(BeamSearch, FindsNothingWhereNothingIsFinite) {
  const test::StoredModel stored;
  LoadedModel model = stored.load(1, 9);
  const Tensor weights = model.placed().params.all().front()->value;
  const std::vector<double> wrong(static_cast<size_t>(weights.shape.elements()), NAN);
  model.device().upload(wrong.data(), weights.data, wrong.size() * sizeof(double));
  InferenceEngine decoder(model, {.rows = 2, .length = 9});
  EXPECT_TRUE(beam_search(decoder, Ids{3, 1}, {.beams = 2, .tokens = 5}).empty());
}

}  // namespace
}  // namespace bev
