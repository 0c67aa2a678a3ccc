#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/philox.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"
#include "text/stories/story_corpus.h"
#include "unit/text/naive_grammar.h"

namespace bev {
namespace {

using test::expect_error;
using test::NaiveGrammar;

// The condition that text/stories/grammar.h asks for, read from the written rules: it concerns
// alternatives alone, so it holds in every context.
TEST(StoryGrammar, AlternativesOfEveryChoiceArePrefixFree) {
  const std::vector<GrammarRule> rules = story_rules();
  const NaiveGrammar naive(rules);
  int choices = 0;
  for (const GrammarRule& rule : rules) {
    std::vector<std::set<std::string>> leading;
    for (const auto& alternative : rule.alternatives) {
      const auto texts = naive.leading(rule, alternative.pattern);
      leading.emplace_back(texts.begin(), texts.end());
      EXPECT_FALSE(leading.back().contains("")) << rule.name;
    }
    for (size_t a = 0; a < leading.size(); ++a)
      for (size_t b = 0; b < leading.size(); ++b)
        for (const std::string& first : leading[a])
          for (const std::string& second : leading[b])
            EXPECT_FALSE(a != b && second.starts_with(first)) << rule.name << ": " << first;
    choices += leading.size() > 1;
  }
  EXPECT_GE(choices, 15);
}

TEST(StoryGrammar, IsWhatASmallModelCanLearn) {
  const StoryStatistics s = story_statistics();
  EXPECT_GT(s.nats_per_byte, 0.7);
  EXPECT_LT(s.nats_per_byte, 1.1);
  EXPECT_GT(s.bytes_per_story, 150);
  EXPECT_LT(s.bytes_per_story, 300);
  EXPECT_NEAR(s.nats_per_byte, s.nats_per_story / s.bytes_per_story, 1e-15);
  EXPECT_NEAR(s.nats_per_token, s.nats_per_story / (s.bytes_per_story + 1), 1e-15);
  EXPECT_GE(story_grammar().rarest(), 0.005);
  const size_t words = story_grammar().vocabulary().size();
  EXPECT_GE(words, 200u);
  EXPECT_LE(words, 400u);
}

// Pinned: the same stories on every machine and in every version. A change of the grammar changes
// these, and must say so.
TEST(StoryGrammar, StoriesAndStatisticsArePinned) {
  EXPECT_EQ(story(1234, 0),
            "Ann got a hot cat. The cat held sand. She tore her dam. So Ann laid the cat for oil, "
            "two rags and mud.");
  EXPECT_EQ(story(1234, kFirstValidationStory),
            "Tom fed a lean fox. Ray sold one saw, seven hot ties, the rib, that toy. Tom moved "
            "the fast pit. The fox dug wool. He laid two deep caps, his vase. Tom went to the new "
            "barn. Tom ate the seed and glue. He ran to his zoo. Now he led the plain web and a "
            "jar. He got ham. Tom held a weak bin. Once he saw flat wax. Tom wove worn gum, the "
            "bag. So Tom sold the fox for red wax, two blue mats and ripe silk.");
  EXPECT_NEAR(story_statistics().nats_per_byte, 0.7751203118052591, 1e-12);
}

TEST(StoryGrammar, StoriesLookLikeStories) {
  for (int64_t i = 0; i < 300; ++i) {
    const std::string text = story(1, i);
    EXPECT_EQ(text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ,."),
              std::string::npos)
        << text;
    EXPECT_EQ(text.back(), '.');
    EXPECT_GE(std::count(text.begin(), text.end(), '.'), 3) << text;
    // The hero of the first word is the hero of the end.
    const std::string hero = text.substr(0, text.find(' '));
    EXPECT_NE(text.find(" So " + hero + " "), std::string::npos) << text;
  }
  EXPECT_NE(story(1, 0), story(2, 0));
  EXPECT_NE(story(1, 0), story(1, 1));
  expect_error(ErrorKind::Internal, "-1", [] { story(1, -1); });
}

// Law of large numbers: the means of n independent stories lie within 5 standard errors of the
// closed form (one such test in a million fails by chance; the seed is fixed).
TEST(StoryGrammar, ClosedFormAgreesWithALargeSample) {
  constexpr int64_t kStories = 50000;
  double nats = 0, nats_squared = 0, bytes = 0, bytes_squared = 0;
  for (int64_t i = 0; i < kStories; ++i) {
    const Grammar::Text text = scored_story(99, i);
    const auto scored = nats_of(text.text);
    ASSERT_TRUE(scored.has_value()) << text.text;
    ASSERT_EQ(*scored, text.nats) << text.text;
    const auto length = static_cast<double>(text.text.size());
    nats += text.nats;
    nats_squared += text.nats * text.nats;
    bytes += length;
    bytes_squared += length * length;
  }
  const auto n = static_cast<double>(kStories);
  const auto standard_error = [&](double sum, double squares) {
    return std::sqrt((squares / n - sum / n * (sum / n)) / n);
  };
  const StoryStatistics s = story_statistics();
  const double nats_error = standard_error(nats, nats_squared);
  EXPECT_NEAR(nats / n, s.nats_per_story, 5 * nats_error);
  EXPECT_NEAR(bytes / n, s.bytes_per_story, 5 * standard_error(bytes, bytes_squared));
  EXPECT_NEAR(nats / bytes, s.nats_per_byte, 2e-3);
  // The bound is tight enough to see a wrong weight.
  EXPECT_LT(5 * nats_error, 0.02 * s.nats_per_story);
}

// Each weight matters, and the sample test above would see it: the planted grammar predicts a mean
// far outside its bound.
TEST(PlantedFault, AWrongWeightOfTheStoryGrammarShows) {
  const double right = story_statistics().nats_per_story;
  for (const char* name : {"next", "list", "object", "subject", "thing"}) {
    std::vector<GrammarRule> rules = story_rules();
    for (GrammarRule& rule : rules)
      if (rule.name == name) rule.alternatives.front().weight += 1;
    EXPECT_GT(std::abs(Grammar(rules).expectation().nats - right), 1e-2) << name;
  }
}

TEST(PlantedFault, AmbiguousWordsInTheStoryGrammarAreRefused) {
  std::vector<GrammarRule> rules = story_rules();
  for (GrammarRule& rule : rules)
    if (rule.name == "noun") rule.alternatives.push_back({1, "hatch"});
  expect_error(ErrorKind::Internal, "\"hatch\" begins with \"hat\"", [&] { Grammar{rules}; });
}

// One letter changed: refused, or another story with one derivation of its own. The oracle tries
// everything.
TEST(StoryGrammar, ChangedLettersAreRefusedOrAnotherStory) {
  const std::vector<GrammarRule> rules = story_rules();
  const NaiveGrammar naive(rules);
  int refused = 0, other = 0;
  for (int64_t i = 0; i < 3; ++i) {
    const std::string text = story(5, i);
    ASSERT_EQ(naive.derivations(text).count, 1) << text;
    for (size_t at = 0; at < text.size(); ++at) {
      for (const char c : {'a', 't', 'S', ' ', '.', '\0'}) {
        if (c == text[at]) continue;
        std::string changed = text;
        changed[at] = c;
        const auto nats = nats_of(changed);
        const NaiveGrammar::Derivations all = naive.derivations(changed);
        ASSERT_EQ(all.count, nats.has_value() ? 1 : 0) << changed;
        EXPECT_NEAR(nats.value_or(0), all.nats, 1e-9) << changed;
        ++(nats ? other : refused);
      }
    }
  }
  EXPECT_GT(other, 5);
  EXPECT_GT(refused, 20 * other);
}

std::string lines(int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i) text += story(8, i) + "\n";
  return text;
}

TEST(StoryAcceptance, TakesAllOfACorpus) {
  const StoryAcceptance a = accept_stories(lines(50) + "\n\n" + lines(1));
  EXPECT_EQ(a.stories, 51);
  EXPECT_EQ(a.accepted_stories, 51);
  EXPECT_GT(a.sentences, 3 * 51);
  EXPECT_EQ(a.accepted_sentences, a.sentences);
  EXPECT_FALSE(a.cut);
  EXPECT_NEAR(a.accepted_nats / static_cast<double>(a.accepted_bytes), 0.8, 0.05);
}

TEST(StoryAcceptance, ACutEndIsNobodysFault) {
  const std::string whole = story(8, 0), text = whole + "\n" + story(8, 1);
  for (size_t size = 0; size <= text.size(); ++size) {
    const StoryAcceptance a = accept_stories(std::string_view(text).substr(0, size));
    EXPECT_EQ(a.accepted_sentences, a.sentences) << size;
    EXPECT_EQ(a.stories, a.accepted_stories) << size;
    EXPECT_EQ(a.stories, size < whole.size() ? 0 : size < text.size() ? 1 : 2);
    EXPECT_EQ(a.cut,
              size > 0 && size != whole.size() && size != whole.size() + 1 && size != text.size());
  }
  // Ended by a newline it was not cut.
  const StoryAcceptance a = accept_stories(whole.substr(0, whole.size() - 3) + "\n");
  EXPECT_EQ(a.stories, 1);
  EXPECT_EQ(a.accepted_stories, 0);
  EXPECT_EQ(a.sentences, a.accepted_sentences + 1);
  EXPECT_EQ(a.rejected_stories.size(), 1u);
  EXPECT_EQ(a.rejected_sentences.size(), 1u);
}

TEST(StoryAcceptance, SentencesAreJudgedAlone) {
  // Right sentences that are no story: no opening, two heroes.
  const StoryAcceptance a = accept_stories(
      "He sold two red hats. So Tom sold the dog for hay.\n"
      "Tom met a red dog. Then she ran to the park. So Tom sold the dog for hay.\n");
  EXPECT_EQ(a.stories, 2);
  EXPECT_EQ(a.accepted_stories, 0);
  EXPECT_EQ(a.sentences, 5);
  EXPECT_EQ(a.accepted_sentences, 5);
  // Within a sentence the hero is one.
  EXPECT_EQ(accept_stories("He sold his hat.\n").accepted_sentences, 1);
  EXPECT_EQ(accept_stories("He sold her hat.\n").accepted_sentences, 0);
  EXPECT_EQ(accept_stories("He sold two red hat.\n").accepted_sentences, 0);
  EXPECT_EQ(accept_stories("  He sold hay.\n").accepted_sentences, 0);
}

TEST(StoryAcceptance, TakesArbitraryBytes) {
  std::string noise, dots;
  for (uint64_t i = 0; i < 5000; ++i)
    for (const uint32_t word : philox(3, 0, i)) {
      noise += static_cast<char>(word & 0xFF);
      dots += " .\nHe"[word % 5];
    }
  for (const std::string& text : {noise, dots, noise + lines(3) + noise}) {
    const StoryAcceptance a = accept_stories(text, 2);
    EXPECT_LE(a.rejected_sentences.size(), 2u);
    EXPECT_LE(a.accepted_stories, 3);
    EXPECT_LT(a.accepted_sentences, a.sentences);
  }
  EXPECT_EQ(accept_stories("").sentences, 0);
  EXPECT_EQ(accept_stories("\n\n\n").stories, 0);
  EXPECT_EQ(accept_stories(std::string(100, '.') + "\n").sentences, 100);
  EXPECT_LE(accept_stories(std::string(100000, 'x') + "\n").rejected_stories.at(0).size(), 1000u);
}

TEST(StoryFile, WritesWholeStoriesUntilItIsLargeEnough) {
  const test::TemporaryDirectory folder;
  const auto write = [&](const StoryOrder& order) {
    AtomicFile file(folder / "a.txt");
    const StoryTotals totals = write_stories(file, order, [](const StoryTotals&) {});
    file.commit();
    return totals;
  };
  const StoryTotals few = write({.seed = 4, .first = 10, .min_stories = 3});
  EXPECT_EQ(few.stories, 3);
  EXPECT_EQ(read_text(folder / "a.txt"),
            story(4, 10) + "\n" + story(4, 11) + "\n" + story(4, 12) + "\n");
  const StoryTotals many = write({.seed = 4, .first = 0, .min_bytes = 600'000});
  const std::string text = read_text(folder / "a.txt");
  EXPECT_EQ(static_cast<int64_t>(text.size()), many.bytes);
  EXPECT_GE(many.bytes, 600'000);
  EXPECT_LT(many.bytes - static_cast<int64_t>(story(4, many.stories - 1).size() + 1), 600'000);
  const StoryAcceptance read = accept_stories(text);
  EXPECT_EQ(read.accepted_stories, many.stories);
  EXPECT_NEAR(read.accepted_nats, many.nats, 1e-6);
  EXPECT_NEAR(many.nats_per_byte(), story_statistics().nats_per_byte, 0.01);
  EXPECT_LT(many.nats_per_token(), many.nats_per_byte());
}

TEST(StoryFile, TrainingStopsBeforeValidation) {
  const test::TemporaryDirectory folder;
  AtomicFile file(folder / "a.txt");
  const auto ignore = [](const StoryTotals&) {};
  const int64_t last = kFirstValidationStory - 1;
  EXPECT_EQ(write_stories(file, {.seed = 1, .first = last, .min_stories = 1}, ignore).stories, 1);
  EXPECT_EQ(write_stories(file, {.seed = 1, .first = last + 1, .min_stories = 2}, ignore).stories,
            2);
  expect_error(ErrorKind::Usage, "stories for training",
               [&] { write_stories(file, {.seed = 1, .first = last, .min_stories = 2}, ignore); });
}

}  // namespace
}  // namespace bev
