#include "unit/text/naive_grammar.h"

#include <cmath>
#include <stdexcept>

namespace bev::test {

namespace {

double probability(const GrammarRule& rule, const GrammarRule::Alternative& alternative) {
  int64_t total = 0;
  for (const auto& each : rule.alternatives) total += each.weight;
  return static_cast<double>(alternative.weight) / static_cast<double>(total);
}

std::string form(const std::string& written, size_t number) {
  std::string_view rest = written;
  for (; number > 0; --number) rest.remove_prefix(rest.find('|') + 1);
  return std::string(rest.substr(0, rest.find('|')));
}

// "<a=b>" -> a, b; "<b>" -> "", b.
std::pair<std::string, std::string> reference(std::string_view mark) {
  const std::string inside(mark.substr(1, mark.size() - 2));
  const size_t equals = inside.find('=');
  if (equals == std::string::npos) return {"", inside};
  return {inside.substr(0, equals), inside.substr(equals + 1)};
}

}  // namespace

NaiveGrammar::NaiveGrammar(std::span<const GrammarRule> rules) : rules_(rules) {
  for (const GrammarRule& rule : rules_) {
    for (const auto& alternative : rule.alternatives) {
      const std::string& p = alternative.pattern;
      for (size_t at = p.find('<'); at != std::string::npos; at = p.find('<', at + 1)) {
        const auto [slot, name] =
            reference(std::string_view(p).substr(at, p.find('>', at) + 1 - at));
        if (!slot.empty()) slot_rules_[slot] = name;
      }
    }
  }
}

const GrammarRule& NaiveGrammar::find(std::string_view name) const {
  for (const GrammarRule& rule : rules_)
    if (rule.name == name) return rule;
  throw std::runtime_error("no rule " + std::string(name));
}

std::string NaiveGrammar::form_of(const std::string& mark, const Slots& slots) const {
  const size_t dot = mark.find('.');
  const std::string slot = mark.substr(1, dot - 1);
  const std::string name = mark.substr(dot + 1, mark.size() - dot - 2);
  const GrammarRule& words = find(slot_rules_.at(slot));
  for (size_t f = 0; f < words.forms.size(); ++f)
    if (words.forms[f] == name) return form(*slots.at(slot), f);
  throw std::runtime_error("no form " + mark);
}

std::vector<std::pair<std::string, double>> NaiveGrammar::enumerate() const {
  std::vector<std::pair<std::string, double>> out;
  expand("", "<" + rules_[0].name + ">", 1, {}, out);
  return out;
}

void NaiveGrammar::expand(std::string done, std::string_view rest, double p, Slots slots,
                          std::vector<std::pair<std::string, double>>& out) const {
  while (!rest.empty() && rest[0] != '<') {
    if (rest[0] == '{') {
      const std::string mark(rest.substr(0, rest.find('}') + 1));
      done += form_of(mark, slots);
      rest.remove_prefix(mark.size());
    } else {
      done += rest[0];
      rest.remove_prefix(1);
    }
  }
  if (rest.empty()) {
    out.emplace_back(done, p);
    return;
  }
  const std::string_view mark = rest.substr(0, rest.find('>') + 1);
  const auto [slot, name] = reference(mark);
  const GrammarRule& rule = find(name);
  for (const auto& alternative : rule.alternatives) {
    if (!slot.empty()) slots[slot] = &alternative.pattern;
    const std::string text =
        rule.forms.empty() ? alternative.pattern : form(alternative.pattern, 0);
    expand(done, text + std::string(rest.substr(mark.size())), p * probability(rule, alternative),
           slots, out);
  }
}

NaiveGrammar::Derivations NaiveGrammar::derivations(std::string_view text) const {
  Derivations found;
  match(text, "<" + rules_[0].name + ">", 0, {}, found);
  return found;
}

void NaiveGrammar::match(std::string_view text, const std::string& pending, double nats,
                         const Slots& slots, Derivations& found) const {
  std::string_view rest = pending;
  while (!rest.empty() && rest[0] != '<') {
    std::string literal(1, rest[0]);
    size_t taken = 1;
    if (rest[0] == '{') {
      taken = rest.find('}') + 1;
      literal = form_of(std::string(rest.substr(0, taken)), slots);
    }
    if (!text.starts_with(literal)) return;
    text.remove_prefix(literal.size());
    rest.remove_prefix(taken);
  }
  if (rest.empty()) {
    if (!text.empty()) return;
    ++found.count;
    found.nats = nats;
    return;
  }
  const std::string_view mark = rest.substr(0, rest.find('>') + 1);
  const auto [slot, name] = reference(mark);
  const GrammarRule& rule = find(name);
  for (const auto& alternative : rule.alternatives) {
    const std::string written =
        rule.forms.empty() ? alternative.pattern : form(alternative.pattern, 0);
    if (written[0] != '<' && written[0] != '{' && !text.starts_with(written[0])) continue;
    Slots with = slots;
    if (!slot.empty()) with[slot] = &alternative.pattern;
    match(text, written + std::string(rest.substr(mark.size())),
          nats - std::log(probability(rule, alternative)), with, found);
  }
}

std::vector<std::string> NaiveGrammar::leading(const GrammarRule& rule,
                                               const std::string& pattern) const {
  if (!rule.forms.empty()) return {form(pattern, 0)};
  if (pattern[0] == '{') {
    const size_t dot = pattern.find('.');
    const GrammarRule& words = find(slot_rules_.at(pattern.substr(1, dot - 1)));
    std::vector<std::string> texts;
    for (const auto& word : words.alternatives) {
      const Slots slots{{pattern.substr(1, dot - 1), &word.pattern}};
      texts.push_back(form_of(pattern.substr(0, pattern.find('}') + 1), slots));
    }
    return texts;
  }
  if (pattern[0] == '<') {
    const GrammarRule& first = find(reference(pattern.substr(0, pattern.find('>') + 1)).second);
    std::vector<std::string> texts;
    for (const auto& alternative : first.alternatives)
      for (std::string& text : leading(first, alternative.pattern))
        texts.push_back(std::move(text));
    return texts;
  }
  return {pattern.substr(0, pattern.find_first_of("<{"))};
}

}  // namespace bev::test
