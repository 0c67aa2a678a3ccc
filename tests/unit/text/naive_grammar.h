// A second, slow reading of grammar rules, as an oracle: it works on the written patterns by
// rewriting and backtracking, and shares no code with src/text/stories/grammar.cpp.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/stories/grammar.h"

namespace bev::test {

class NaiveGrammar {
 public:
  explicit NaiveGrammar(std::span<const GrammarRule> rules);

  // Every text of the start rule with its probability, once per derivation. REQUIRES: finitely
  // many.
  std::vector<std::pair<std::string, double>> enumerate() const;

  struct Derivations {
    int count = 0;
    double nats = 0;  // of the last one found
  };
  // All derivations of the text from the start rule, by trying everything.
  Derivations derivations(std::string_view text) const;

  // The literal texts that can stand at the beginning of a pattern.
  std::vector<std::string> leading(const GrammarRule& rule, const std::string& pattern) const;

 private:
  using Slots = std::map<std::string, const std::string*>;  // slot -> written alternative

  const GrammarRule& find(std::string_view name) const;
  std::string form_of(const std::string& reference, const Slots& slots) const;
  void expand(std::string done, std::string_view rest, double p, Slots slots,
              std::vector<std::pair<std::string, double>>& out) const;
  void match(std::string_view text, const std::string& pending, double nats, const Slots& slots,
             Derivations& found) const;

  std::span<const GrammarRule> rules_;
  std::map<std::string, std::string, std::less<>> slot_rules_;
};

}  // namespace bev::test
