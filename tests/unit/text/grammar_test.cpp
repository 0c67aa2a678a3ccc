#include "text/stories/grammar.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "support/expect_error.h"
#include "unit/text/naive_grammar.h"

namespace bev {
namespace {

using test::expect_error;
using test::NaiveGrammar;
using Rules = std::vector<GrammarRule>;

// All features, finitely many texts: weights, nesting, two slots, forms of different lengths, a
// slot set in one branch only.
Rules small_rules() {
  return {
      {.name = "text", .alternatives = {{3, "<who=name> <act>."}, {1, "It rained<often>."}}},
      {.name = "act",
       .alternatives = {{2, "saw <what=beast>, and {who.he} fed the {what.name}"},
                        {5, "slept<often>"},
                        {1, "liked {who.his} <thing>"}}},
      {.name = "often", .alternatives = {{1, " once"}, {4, " twice<also>"}, {2, ", too"}}},
      {.name = "also", .alternatives = {{1, " and {who.he} sang"}, {9, " or so"}}},
      {.name = "name",
       .forms = {"name", "he", "his"},
       .alternatives = {{1, "Tom|he|his"}, {2, "Annabel|she|her"}, {4, "Bo|they|their"}}},
      {.name = "beast", .forms = {"name"}, .alternatives = {{1, "a cat"}, {7, "crocodiles"}}},
      word_rule("thing", {{3, "hat pen"}, {1, "umbrella"}}),
  };
}

// The same without the branch that would repeat an unset slot.
Rules legal_rules() {
  Rules rules = small_rules();
  rules[0].alternatives[1].pattern = "It rained.";
  return rules;
}

TEST(Grammar, TextsOfASmallGrammarAreAllThereIs) {
  const Rules rules = legal_rules();
  const Grammar grammar(rules);
  double total = 0, nats = 0, bytes = 0;
  std::set<std::string> texts;
  for (const auto& [text, p] : NaiveGrammar(rules).enumerate()) {
    total += p;
    nats -= p * std::log(p);
    bytes += p * static_cast<double>(text.size());
    EXPECT_TRUE(texts.insert(text).second) << text;
    const auto found = grammar.nats_of(text);
    ASSERT_TRUE(found.has_value()) << text;
    EXPECT_NEAR(*found, -std::log(p), 1e-12) << text;
  }
  EXPECT_EQ(texts.size(), 28u);
  EXPECT_NEAR(total, 1, 1e-12);
  EXPECT_NEAR(grammar.expectation().nats, nats, 1e-12 * nats);
  EXPECT_NEAR(grammar.expectation().bytes, bytes, 1e-12 * bytes);
}

TEST(Grammar, TextsBesideItAreRefused) {
  const Grammar grammar(legal_rules());
  EXPECT_TRUE(grammar.nats_of("Tom saw a cat, and he fed the a cat.").has_value());
  for (const char* text :
       {"", "T", "Tom", "Tom saw a cat, and she fed the a cat.", "It rained", "It rained..",
        "Tom saw a cat, and he fed the crocodiles.", "Tom liked her hat.", "\xFF\x00", "tom slept.",
        "Tom slept once. ", "Bo liked his hat."})
    EXPECT_FALSE(grammar.nats_of(text).has_value()) << text;
}

TEST(Grammar, ARuleAloneTakesAnyKeptWordButOneOnly) {
  const Grammar grammar(legal_rules());
  EXPECT_TRUE(grammar.accepts("also", " and she sang"));
  EXPECT_TRUE(grammar.accepts("also", " and they sang"));
  EXPECT_FALSE(grammar.accepts("also", " and it sang"));
  EXPECT_TRUE(grammar.accepts("act", "liked their pen"));
  EXPECT_FALSE(grammar.accepts("act", "liked their pen."));
  // Both repetitions must fit one word.
  const Rules pair{{.name = "start", .alternatives = {{1, "<who=name>: <both>"}}},
                   {.name = "both", .alternatives = {{1, "{who.he} and {who.his}"}}},
                   legal_rules()[4]};
  const Grammar both(pair);
  EXPECT_TRUE(both.accepts("both", "she and her"));
  EXPECT_FALSE(both.accepts("both", "she and his"));
  expect_error(ErrorKind::Internal, "nothing", [&] { both.accepts("nothing", ""); });
}

// a^n b with probability (2/3)^n / 3: geometric, mean 2.
TEST(Grammar, RecursionHasItsClosedForm) {
  const Grammar grammar(Rules{{.name = "s", .alternatives = {{2, "a<s>"}, {1, "b"}}}});
  const double h = -(2.0 / 3 * std::log(2.0 / 3) + 1.0 / 3 * std::log(1.0 / 3));
  EXPECT_NEAR(grammar.expectation().nats, 3 * h, 1e-12);
  EXPECT_NEAR(grammar.expectation().bytes, 3, 1e-12);
  EXPECT_NEAR(*grammar.nats_of("aab"), -std::log(4.0 / 27), 1e-12);
  // Long texts do not use the call stack.
  const std::string deep = std::string(1'000'000, 'a') + "b";
  EXPECT_NEAR(*grammar.nats_of(deep), 1e6 * std::log(1.5) + std::log(3.0), 1e-4);
}

// Two rules that mention each other, and one of them twice.
TEST(Grammar, MutualRecursionIsALinearSystem) {
  const Grammar grammar(Rules{{.name = "x", .alternatives = {{1, "(<y><y>)"}, {3, "1"}}},
                              {.name = "y", .alternatives = {{1, "[<x>]"}, {1, "2"}}}});
  // X = hx + Y / 2, Y = hy + X / 2; with bytes: X = 5/4 + Y / 2, Y = 3/2 + X / 2.
  const double hx = -(0.25 * std::log(0.25) + 0.75 * std::log(0.75)), hy = std::log(2.0);
  EXPECT_NEAR(grammar.expectation("x").nats, (hx + hy / 2) / 0.75, 1e-12);
  EXPECT_NEAR(grammar.expectation("y").nats, (hy + hx / 2) / 0.75, 1e-12);
  EXPECT_NEAR(grammar.expectation("x").bytes, 2.0 / 0.75, 1e-12);
}

TEST(Grammar, DrawsAreDistributedAsTheWeightsSay) {
  const Rules rules = legal_rules();
  const Grammar grammar(rules);
  std::map<std::string, int> seen;
  constexpr int kDraws = 100000;
  for (uint64_t i = 0; i < kDraws; ++i) ++seen[grammar.draw(7, i).text];
  for (const auto& [text, p] : NaiveGrammar(rules).enumerate()) {
    const double sigma = std::sqrt(kDraws * p * (1 - p));
    EXPECT_NEAR(seen[text], kDraws * p, 5 * sigma) << text;
  }
  EXPECT_EQ(seen.size(), 28u);
}

TEST(Grammar, DrawsArePureFunctions) {
  const Grammar grammar(legal_rules()), again(legal_rules());
  for (uint64_t i : {0ull, 5ull, 1ull << 40, ~0ull}) {
    EXPECT_EQ(grammar.draw(3, i).text, again.draw(3, i).text);
    EXPECT_EQ(grammar.draw(3, i).nats, *grammar.nats_of(again.draw(3, i).text));
  }
}

void refused(const Rules& rules, const std::string& text) {
  expect_error(ErrorKind::Internal, text, [&] { Grammar{rules}; });
}

TEST(PlantedFault, AmbiguousGrammarsAreRefused) {
  // Equal, one the prefix of the other, and the same behind two references and a repetition.
  refused({{.name = "s", .alternatives = {{1, "a"}, {1, "a"}}}}, "ambiguous");
  refused({{.name = "s", .alternatives = {{1, "the"}, {1, "then"}}}}, "begins with \"the\"");
  refused({{.name = "s", .alternatives = {{1, "<x> 1"}, {1, "ab 2"}}},
           {.name = "x", .alternatives = {{1, "<y>"}}},
           {.name = "y", .alternatives = {{1, "a"}, {1, "b"}}}},
          "rule s is ambiguous");
  refused({{.name = "s", .alternatives = {{1, "<who=n> <x>"}}},
           {.name = "x", .alternatives = {{1, "{who.he} ran"}, {1, "hen"}}},
           {.name = "n", .forms = {"n", "he"}, .alternatives = {{1, "Tom|he"}, {1, "Ann|she"}}}},
          "rule x is ambiguous");
  // One alternative that repeats the same form of several words is no conflict.
  Grammar(
      Rules{{.name = "s", .alternatives = {{1, "<who=n> <x>"}}},
            {.name = "x", .alternatives = {{1, "{who.he} ran"}, {1, "Then"}}},
            {.name = "n", .forms = {"n", "he"}, .alternatives = {{1, "Tom|he"}, {1, "Bo|he"}}}});
}

TEST(PlantedFault, SenselessGrammarsAreRefused) {
  refused({}, "needs a rule");
  refused(small_rules(), "slot who can be repeated before it is set");
  refused({{.name = "s", .alternatives = {{1, "<s>a"}, {1, "b"}}}}, "begin with itself");
  refused({{.name = "s", .alternatives = {{1, "a<s>"}}}}, "no finite expected length");
  refused({{.name = "s", .alternatives = {{1, "a<s><s>"}, {1, "b"}}}}, "no finite expected length");
  refused({{.name = "s", .alternatives = {{3, "a<s><s>"}, {1, "b"}}}}, "no finite expected length");
  refused({{.name = "s", .alternatives = {{1, "<t>"}}}}, "no rule t");
  refused({{.name = "s", .alternatives = {{1, "a{t.x}"}}}}, "no part sets the slot");
  refused({{.name = "s", .alternatives = {{1, "a<t"}}}}, "not closed");
  refused({{.name = "s", .alternatives = {{0, "a"}}}}, "weight");
  refused({{.name = "s", .alternatives = {{-1, "a"}}}}, "weight");
  refused({{.name = "s", .alternatives = {{1, "a"}, {1, ""}}}}, "empty");
  refused({{.name = "s", .alternatives = {}}}, "no alternatives");
  refused({{.name = "s", .alternatives = {{1, "a"}}}, {.name = "s", .alternatives = {{1, "b"}}}},
          "two rules s");
  refused({{.name = "s", .alternatives = {{1, "<x=t>"}}}, word_rule("t", {{1, "a b"}})},
          "without forms");
  refused({{.name = "s", .forms = {"a", "b"}, .alternatives = {{1, "a"}}}}, "2 forms");
}

TEST(PlantedFault, ASwapOfWeightsChangesTheExpectations) {
  const Grammar right(legal_rules());
  Rules rules = legal_rules();
  std::swap(rules[1].alternatives[0].weight, rules[1].alternatives[1].weight);
  const Grammar wrong(rules);
  EXPECT_GT(std::abs(wrong.expectation().nats - right.expectation().nats), 1e-3);
  EXPECT_GT(std::abs(wrong.expectation().bytes - right.expectation().bytes), 1e-3);
}

}  // namespace
}  // namespace bev
