#include "text/stories/grammar.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/check.h"
#include "base/philox.h"

namespace bev {

namespace {

// Numbers below a bound, without bias, from the Philox blocks of one (key, index).
class Draws {
 public:
  Draws(uint64_t key, uint64_t index) : key_(key), index_(index) {}

  // Lemire, "Fast random integer generation in an interval", 2019. REQUIRES: 0 < bound < 2^32.
  uint32_t below(uint32_t bound) {
    uint64_t product = uint64_t{word()} * bound;
    if (static_cast<uint32_t>(product) < bound) {
      const uint32_t threshold = (0u - bound) % bound;
      while (static_cast<uint32_t>(product) < threshold) product = uint64_t{word()} * bound;
    }
    return static_cast<uint32_t>(product >> 32);
  }

 private:
  uint32_t word() {
    if (used_ == 4) {
      block_ = philox(key_, index_, next_++);
      used_ = 0;
    }
    return block_[used_++];
  }

  uint64_t key_, index_, next_ = 0;
  PhiloxBlock block_{};
  size_t used_ = 4;
};

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> pieces;
  for (;;) {
    const size_t end = text.find(separator);
    pieces.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return pieces;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

GrammarRule word_rule(std::string name, std::initializer_list<WeightedWords> words) {
  GrammarRule rule{.name = std::move(name), .alternatives = {}};
  for (const WeightedWords& group : words)
    for (std::string& word : split(group.words, ' '))
      rule.alternatives.push_back({.weight = group.weight, .pattern = std::move(word)});
  return rule;
}

Grammar::Grammar(std::span<const GrammarRule> rules) {
  BEV_CHECK(!rules.empty(), Internal, "a grammar needs a rule");
  for (const GrammarRule& rule : rules) {
    for (const Rule& earlier : rules_)
      BEV_CHECK(earlier.name != rule.name, Internal, "there are two rules {}", rule.name);
    rules_.push_back({.name = rule.name,
                      .form_names = rule.forms,
                      .alternatives = {},
                      .total = 0,
                      .leading = {}});
  }
  for (size_t r = 0; r < rules.size(); ++r) {
    Rule& rule = rules_[r];
    for (const GrammarRule::Alternative& written : rules[r].alternatives) {
      BEV_CHECK(written.weight > 0 && written.weight < 1'000'000, Internal,
                "rule {}: the weight {} of \"{}\" is not in 1..999999", rule.name, written.weight,
                written.pattern);
      Alternative alternative{.weight = written.weight, .nats = 0, .parts = {}, .forms = {}};
      if (rule.form_names.empty()) {
        alternative.parts = parts_of(written.pattern, rule);
      } else {
        alternative.forms = split(written.pattern, '|');
        BEV_CHECK(alternative.forms.size() == rule.form_names.size(), Internal,
                  "rule {}: \"{}\" does not have {} forms", rule.name, written.pattern,
                  rule.form_names.size());
        for (const std::string& form : alternative.forms)
          BEV_CHECK(!form.empty(), Internal, "rule {}: a form of \"{}\" is empty", rule.name,
                    written.pattern);
        alternative.parts = {{.kind = PartKind::Literal, .text = alternative.forms.front()}};
      }
      BEV_CHECK(!alternative.parts.empty(), Internal, "rule {} has an empty alternative",
                rule.name);
      rule.total += written.weight;
      rule.alternatives.push_back(std::move(alternative));
    }
    BEV_CHECK(!rule.alternatives.empty(), Internal, "rule {} has no alternatives", rule.name);
    for (Alternative& alternative : rule.alternatives)
      alternative.nats =
          std::log(static_cast<double>(rule.total) / static_cast<double>(alternative.weight));
  }
  resolve_repetitions();
  verify_slots();
  std::vector<int> state(rules_.size(), 0);
  for (size_t r = 0; r < rules_.size(); ++r) find_leading(r, state);
  solve_expectations();
}

size_t Grammar::rule_index(std::string_view name) const {
  const auto found =
      std::find_if(rules_.begin(), rules_.end(), [&](const Rule& r) { return r.name == name; });
  BEV_CHECK(found != rules_.end(), Internal, "there is no rule {}", name);
  return static_cast<size_t>(found - rules_.begin());
}

std::vector<Grammar::Part> Grammar::parts_of(std::string_view pattern, const Rule& rule) {
  std::vector<Part> parts;
  while (!pattern.empty()) {
    const size_t mark = pattern.find_first_of("<{");
    if (mark != 0)
      parts.push_back({.kind = PartKind::Literal, .text = std::string(pattern.substr(0, mark))});
    if (mark == std::string_view::npos) break;
    const bool expand = pattern[mark] == '<';
    const size_t close = pattern.find(expand ? '>' : '}', mark);
    BEV_CHECK(close != std::string_view::npos, Internal, "rule {}: \"{}\" is not closed", rule.name,
              pattern);
    const std::string_view inside = pattern.substr(mark + 1, close - mark - 1);
    parts.push_back(expand ? reference(inside, rule) : repetition(inside, rule));
    pattern.remove_prefix(close + 1);
  }
  return parts;
}

Grammar::Part Grammar::reference(std::string_view inside, const Rule& rule) {
  const size_t equals = inside.find('=');
  Part part{.kind = PartKind::Expand};
  if (equals == std::string_view::npos) {
    part.rule = rule_index(inside);
    return part;
  }
  part.rule = rule_index(inside.substr(equals + 1));
  BEV_CHECK(!rules_[part.rule].form_names.empty(), Internal,
            "rule {}: <{}> keeps a word of a rule without forms", rule.name, inside);
  const std::string_view name = inside.substr(0, equals);
  const auto known = std::find(slots_.begin(), slots_.end(), name);
  part.slot = static_cast<size_t>(known - slots_.begin());
  if (known == slots_.end()) {
    slots_.emplace_back(name);
    slot_rules_.push_back(part.rule);
  }
  BEV_CHECK(slot_rules_[part.slot] == part.rule, Internal,
            "rule {}: slot {} takes words of two rules", rule.name, name);
  return part;
}

// The slot may be declared by a later rule: names are resolved at the end.
Grammar::Part Grammar::repetition(std::string_view inside, const Rule& rule) {
  BEV_CHECK(inside.find('.') != std::string_view::npos, Internal,
            "rule {}: {{{}}} does not name a form", rule.name, inside);
  return {.kind = PartKind::Repeat, .text = std::string(inside)};
}

void Grammar::resolve_repetitions() {
  for (Rule& rule : rules_) {
    for (Alternative& alternative : rule.alternatives) {
      for (Part& part : alternative.parts) {
        if (part.kind != PartKind::Repeat) continue;
        const size_t dot = part.text.find('.');
        const auto slot = std::find(slots_.begin(), slots_.end(), part.text.substr(0, dot));
        BEV_CHECK(slot != slots_.end(), Internal, "rule {}: no part sets the slot of {{{}}}",
                  rule.name, part.text);
        part.slot = static_cast<size_t>(slot - slots_.begin());
        part.rule = slot_rules_[part.slot];
        const auto& forms = rules_[part.rule].form_names;
        const auto form = std::find(forms.begin(), forms.end(), part.text.substr(dot + 1));
        BEV_CHECK(form != forms.end(), Internal, "rule {}: {{{}}} names an unknown form", rule.name,
                  part.text);
        part.form = static_cast<size_t>(form - forms.begin());
        part.text.clear();
      }
    }
  }
}

// For each rule: the slots that must be set before it, and those that are set behind it on every
// path. The first grow from none, the second shrink from all, until nothing changes.
void Grammar::verify_slots() const {
  using Slots = std::set<size_t>;
  Slots all;
  for (size_t s = 0; s < slots_.size(); ++s) all.insert(s);
  std::vector<Slots> needs(rules_.size()), sets(rules_.size(), all);
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t r = 0; r < rules_.size(); ++r) {
      Slots need, behind = all;
      for (const Alternative& alternative : rules_[r].alternatives) {
        Slots have;
        for (const Part& part : alternative.parts) {
          if (part.kind == PartKind::Repeat && !have.contains(part.slot)) need.insert(part.slot);
          if (part.kind != PartKind::Expand) continue;
          for (const size_t slot : needs[part.rule])
            if (!have.contains(slot)) need.insert(slot);
          have.insert(sets[part.rule].begin(), sets[part.rule].end());
          if (part.slot != kNoSlot) have.insert(part.slot);
        }
        std::erase_if(behind, [&](size_t slot) { return !have.contains(slot); });
      }
      changed = changed || need != needs[r] || behind != sets[r];
      needs[r] = std::move(need);
      sets[r] = std::move(behind);
    }
  }
  BEV_CHECK(needs[0].empty(), Internal, "slot {} can be repeated before it is set",
            slots_[*needs[0].begin()]);
}

// state: 0 not begun, 1 begun, 2 done.
void Grammar::find_leading(size_t r, std::vector<int>& state) {
  Rule& rule = rules_[r];
  BEV_CHECK(state[r] != 1, Internal, "rule {} can begin with itself", rule.name);
  if (state[r] == 2) return;
  state[r] = 1;
  for (size_t a = 0; a < rule.alternatives.size(); ++a) {
    const Part& first = rule.alternatives[a].parts.front();
    std::set<std::string> texts;
    if (first.kind == PartKind::Literal) {
      texts.insert(first.text);
    } else if (first.kind == PartKind::Repeat) {
      for (const Alternative& word : rules_[first.rule].alternatives)
        texts.insert(word.forms[first.form]);
    } else {
      find_leading(first.rule, state);
      for (const auto& [text, ignored] : rules_[first.rule].leading) texts.insert(text);
    }
    for (const std::string& text : texts) rule.leading.emplace_back(text, a);
  }
  std::sort(rule.leading.begin(), rule.leading.end());
  // In sorted order a text that begins another begins its successor too.
  for (size_t i = 0; i + 1 < rule.leading.size(); ++i)
    BEV_CHECK(!rule.leading[i + 1].first.starts_with(rule.leading[i].first), Internal,
              "rule {} is ambiguous: \"{}\" begins with \"{}\"", rule.name,
              rule.leading[i + 1].first, rule.leading[i].first);
  state[r] = 2;
}

// What a rule contributes besides the rules that it mentions.
Grammar::Expectation Grammar::own_share(const Rule& rule) const {
  Expectation share;
  for (const Alternative& alternative : rule.alternatives) {
    const double p = static_cast<double>(alternative.weight) / static_cast<double>(rule.total);
    share.nats += p * alternative.nats;
    for (const Part& part : alternative.parts) {
      if (part.kind == PartKind::Literal) {
        share.bytes += p * static_cast<double>(part.text.size());
      } else if (part.kind == PartKind::Repeat) {
        const Rule& words = rules_[part.rule];
        for (const Alternative& word : words.alternatives)
          share.bytes += p * static_cast<double>(word.weight) / static_cast<double>(words.total) *
                         static_cast<double>(word.forms[part.form].size());
      }
    }
  }
  return share;
}

// (I - M) x = own shares, where M[r][s] is how often r mentions s on average. Elimination without
// pivoting: I - M is an M-matrix exactly when all expectations are finite, and then its pivots are
// positive.
void Grammar::solve_expectations() {
  const size_t n = rules_.size();
  std::vector<std::vector<double>> matrix(n, std::vector<double>(n, 0.0));
  for (size_t r = 0; r < n; ++r) {
    expectations_.push_back(own_share(rules_[r]));
    matrix[r][r] = 1;
    for (const Alternative& alternative : rules_[r].alternatives)
      for (const Part& part : alternative.parts)
        if (part.kind == PartKind::Expand)
          matrix[r][part.rule] -=
              static_cast<double>(alternative.weight) / static_cast<double>(rules_[r].total);
  }
  for (size_t k = 0; k < n; ++k) {
    BEV_CHECK(matrix[k][k] > 1e-9, Internal, "rule {} has no finite expected length",
              rules_[k].name);
    for (size_t r = 0; r < n; ++r) {
      if (r == k || matrix[r][k] == 0) continue;
      const double factor = matrix[r][k] / matrix[k][k];
      for (size_t c = k; c < n; ++c) matrix[r][c] -= factor * matrix[k][c];
      expectations_[r].nats -= factor * expectations_[k].nats;
      expectations_[r].bytes -= factor * expectations_[k].bytes;
    }
  }
  for (size_t r = 0; r < n; ++r) {
    expectations_[r].nats /= matrix[r][r];
    expectations_[r].bytes /= matrix[r][r];
  }
}

Grammar::Text Grammar::draw(uint64_t key, uint64_t index) const {
  Draws draws(key, index);
  Text result;
  std::vector<size_t> slots(slots_.size());
  const Part start{.kind = PartKind::Expand, .rule = 0};
  std::vector<const Part*> stack{&start};
  while (!stack.empty()) {
    const Part& part = *stack.back();
    stack.pop_back();
    const Rule& rule = rules_[part.rule];
    if (part.kind == PartKind::Literal) {
      result.text += part.text;
    } else if (part.kind == PartKind::Repeat) {
      result.text += rule.alternatives[slots[part.slot]].forms[part.form];
    } else {
      int64_t left = draws.below(static_cast<uint32_t>(rule.total));
      size_t chosen = 0;
      while (left >= rule.alternatives[chosen].weight) left -= rule.alternatives[chosen++].weight;
      const Alternative& alternative = rule.alternatives[chosen];
      result.nats += alternative.nats;
      if (part.slot != kNoSlot) slots[part.slot] = chosen;
      for (auto p = alternative.parts.rbegin(); p != alternative.parts.rend(); ++p)
        stack.push_back(&*p);
    }
  }
  return result;
}

// The alternative whose leading text stands here: prefix-free texts have no other candidate than
// the last one that sorts before the text.
const Grammar::Alternative* Grammar::announced(const Rule& rule, std::string_view text) const {
  const auto behind =
      std::upper_bound(rule.leading.begin(), rule.leading.end(), text,
                       [](std::string_view t, const auto& lead) { return t < lead.first; });
  if (behind == rule.leading.begin()) return nullptr;
  const auto& [lead, alternative] = *std::prev(behind);
  return text.starts_with(lead) ? &rule.alternatives[alternative] : nullptr;
}

// Takes the repeated word from the text and leaves in the slot only words that fit it.
bool Grammar::match_repetition(const Part& part, std::string_view& text, SlotWords& slots) const {
  const auto& words = rules_[part.rule].alternatives;
  std::vector<size_t>& held = slots[part.slot];
  if (held.empty())
    for (size_t w = 0; w < words.size(); ++w) held.push_back(w);
  // Of several that fit, the longest: "her" before "he".
  std::string_view form;
  for (const size_t w : held) {
    const std::string& candidate = words[w].forms[part.form];
    if (candidate.size() > form.size() && text.starts_with(candidate)) form = candidate;
  }
  if (form.empty()) return false;
  std::erase_if(held, [&](size_t w) { return words[w].forms[part.form] != form; });
  text.remove_prefix(form.size());
  return true;
}

std::optional<double> Grammar::derive(size_t start_rule, std::string_view text) const {
  double nats = 0;
  SlotWords slots(slots_.size());
  const Part start{.kind = PartKind::Expand, .rule = start_rule};
  std::vector<const Part*> stack{&start};
  while (!stack.empty()) {
    const Part& part = *stack.back();
    stack.pop_back();
    if (part.kind == PartKind::Literal) {
      if (!text.starts_with(part.text)) return std::nullopt;
      text.remove_prefix(part.text.size());
    } else if (part.kind == PartKind::Repeat) {
      if (!match_repetition(part, text, slots)) return std::nullopt;
    } else {
      const Rule& rule = rules_[part.rule];
      const Alternative* chosen = announced(rule, text);
      if (chosen == nullptr) return std::nullopt;
      nats += chosen->nats;
      if (part.slot != kNoSlot)
        slots[part.slot] = {static_cast<size_t>(chosen - rule.alternatives.data())};
      for (auto p = chosen->parts.rbegin(); p != chosen->parts.rend(); ++p) stack.push_back(&*p);
    }
  }
  if (!text.empty()) return std::nullopt;
  return nats;
}

bool Grammar::accepts(std::string_view rule, std::string_view text) const {
  return derive(rule_index(rule), text).has_value();
}

std::vector<std::string> Grammar::vocabulary() const {
  std::set<std::string> words;
  const auto add = [&](std::string_view text) {
    std::string word;
    for (const char c : std::string(text) + " ") {
      const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
      if (letter) word += c;
      if (!letter && !word.empty()) words.insert(std::exchange(word, {}));
    }
  };
  for (const Rule& rule : rules_) {
    for (const Alternative& alternative : rule.alternatives) {
      for (const Part& part : alternative.parts) add(part.text);
      for (const std::string& form : alternative.forms) add(form);
    }
  }
  return {words.begin(), words.end()};
}

double Grammar::rarest() const {
  double smallest = 1;
  for (const Rule& rule : rules_)
    for (const Alternative& alternative : rule.alternatives)
      smallest = std::min(
          smallest, static_cast<double>(alternative.weight) / static_cast<double>(rule.total));
  return smallest;
}

}  // namespace bev
