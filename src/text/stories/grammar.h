// Texts from a stochastic grammar whose probabilities are known exactly.
//
// A grammar is a list of rules, a rule a list of weighted alternatives. To expand a rule is to draw
// one alternative with probability weight / (sum of the rule's weights), independently of all else.
// Besides that there is memory: a slot keeps a drawn word, and later parts repeat it, in another
// form if need be (Tom, he, his). A repetition is no choice: it costs nothing.
//
// One text, one derivation. For each rule, let the leading texts of an alternative be the literal
// texts that can stand at its very beginning. The leading texts of all alternatives of a rule must
// be prefix-free: none begins with another. Then the text at a choice begins with the leading texts
// of at most one alternative, whatever follows, so that a reader recovers every choice from left to
// right without going back. Hence texts and derivations correspond one to one: the entropy of the
// text is the entropy of the derivation, and -log p of a text is the sum over the choices met in
// one pass. The constructor verifies the condition and refuses a grammar without it.
//
// Expectations. Let N(r) be the expected nats of what rule r yields. Choices are independent, so
//   N(r) = sum over alternatives a of p(a) * (-log p(a) + sum of N over the rules that a mentions),
// a linear system (rules may mention themselves). Lengths obey the same equations with the bytes of
// literals instead of -log p(a). A repetition contributes the mean length of its form: no weight
// depends on a slot, so the kept word is distributed as when it was drawn wherever it is repeated.
// The system is solved by elimination in doubles; all terms are positive, nothing cancels, and the
// results are good to about 1e-13 relative (tests ask for 1e-12).
//
// Rate. Independent texts one after another form a renewal process. After n texts the total -log p
// divided by the total length tends to E[-log p] / E[length] with probability one (law of large
// numbers above and below the line), and by Shannon no model of the stream can have a smaller
// average loss per byte. It is the ratio of the means, not the mean of the ratios.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bev {

// A rule as it is written down. The first of a grammar is the start.
struct GrammarRule {
  std::string name;
  // The forms of a word, for rules whose words are kept in slots; one alternative then is its forms
  // separated by '|', and the first is what the rule itself yields. Empty: alternatives are
  // patterns.
  std::vector<std::string> forms{};
  struct Alternative {
    int64_t weight;
    // Literal text with <rule>, <slot=rule> (expand a rule with forms and keep the word) and
    // {slot.form} (repeat the kept word).
    std::string pattern;
  };
  std::vector<Alternative> alternatives;
};

// A rule of plain words: "hat pen cup". Each has this weight.
struct WeightedWords {
  int64_t weight;
  std::string_view words;
};
GrammarRule word_rule(std::string name, std::initializer_list<WeightedWords> words);

class Grammar {
 public:
  struct Expectation {
    double nats = 0, bytes = 0;
  };
  struct Text {
    std::string text;
    double nats = 0;  // -log of its probability
  };

  // Internal error when a name is unknown or double, a weight is not positive, an alternative can
  // be empty, two alternatives cannot be told apart, a rule begins with itself, a slot can be
  // repeated before it is set, or the expected length is infinite.
  explicit Grammar(std::span<const GrammarRule> rules);

  // Text `index` of the stream `key`: a pure function, the same on every machine, drawn with
  // integers only.
  Text draw(uint64_t key, uint64_t index) const;

  // -log p of the text; nothing when it cannot be derived. Never fails, whatever the bytes. Summed
  // in the order of draw(), so that both agree to the last bit.
  std::optional<double> nats_of(std::string_view text) const { return derive(0, text); }

  // Whether a rule alone yields the text when the slots that it repeats may hold anything.
  bool accepts(std::string_view rule, std::string_view text) const;

  // Of the start rule.
  Expectation expectation() const { return expectations_[0]; }
  Expectation expectation(std::string_view rule) const { return expectations_[rule_index(rule)]; }

  // All distinct literal words of letters, for the size of the vocabulary.
  std::vector<std::string> vocabulary() const;

  // The smallest probability of any alternative.
  double rarest() const;

 private:
  enum class PartKind : uint8_t { Literal, Expand, Repeat };
  struct Part {
    PartKind kind;
    std::string text{};  // of a literal
    size_t rule = 0;     // to expand; of a repetition, the rule that the slot's words come from
    size_t slot = kNoSlot;
    size_t form = 0;
  };
  struct Alternative {
    int64_t weight = 0;
    double nats = 0;
    std::vector<Part> parts;
    std::vector<std::string> forms;
  };
  struct Rule {
    std::string name;
    std::vector<std::string> form_names;
    std::vector<Alternative> alternatives;
    int64_t total = 0;
    // Sorted; the alternative that each announces.
    std::vector<std::pair<std::string, size_t>> leading;
  };
  static constexpr size_t kNoSlot = ~size_t{0};
  // What a slot may hold, as positions among the alternatives of its rule. Empty: anything.
  using SlotWords = std::vector<std::vector<size_t>>;

  size_t rule_index(std::string_view name) const;
  std::vector<Part> parts_of(std::string_view pattern, const Rule& rule);
  Part reference(std::string_view inside, const Rule& rule);
  Part repetition(std::string_view inside, const Rule& rule);
  void resolve_repetitions();
  void verify_slots() const;
  void find_leading(size_t rule, std::vector<int>& state);
  void solve_expectations();
  Expectation own_share(const Rule& rule) const;
  std::optional<double> derive(size_t rule, std::string_view text) const;
  const Alternative* announced(const Rule& rule, std::string_view text) const;
  bool match_repetition(const Part& part, std::string_view& text, SlotWords& slots) const;

  std::vector<Rule> rules_;
  std::vector<std::string> slots_;         // names
  std::vector<size_t> slot_rules_;         // where the words of each come from
  std::vector<Expectation> expectations_;  // of each rule
};

}  // namespace bev
