#include "text/punkt/punkt_trainer.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/integer.h"
#include "text/punkt/punkt_words.h"

namespace bev {

namespace {

constexpr double kAbbreviationScore = 0.3, kCollocationScore = 7.88, kStarterScore = 30;
constexpr int64_t kRareBelow = 5;

enum TokenFlag : uint32_t {
  kPeriodFinal = 1 << 0,
  kLineStart = 1 << 1,
  kParagraphStart = 1 << 2,
  kFirstUpper = 1 << 3,
  kFirstLower = 1 << 4,
  kAllLetters = 1 << 5,
  kInitial = 1 << 6,
  kNumber = 1 << 7,
  kInternalMark = 1 << 8,  // begins with , : or ;
  kEndsDoubled = 1 << 9,   // ends with two periods
  kIsEndMark = 1 << 10,
  kIsEllipsis = 1 << 11,
  kIsBreak = 1 << 12,  // the judgement of the word by itself
  kIsAbbreviation = 1 << 13,
};

uint32_t flags_of_word(const PunktWord& word, std::string_view type) {
  uint32_t flags = 0;
  const auto set = [&](bool is_set, TokenFlag flag) { flags |= is_set ? flag : 0u; };
  set(word.ends_with_period(), kPeriodFinal);
  set(word.starts_line, kLineStart);
  set(word.starts_paragraph, kParagraphStart);
  set(word.begins_upper(), kFirstUpper);
  set(word.begins_lower(), kFirstLower);
  set(word.is_letters(), kAllLetters);
  set(word.is_initial(), kInitial);
  set(type.starts_with(kPunktNumber), kNumber);
  set(std::string_view(",:;").find(word.text.front()) != std::string_view::npos, kInternalMark);
  set(word.text.ends_with(".."), kEndsDoubled);
  set(word.is_end_mark(), kIsEndMark);
  set(word.is_ellipsis(), kIsEllipsis);
  return flags;
}

int64_t characters_of(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

std::string_view without_last_character(std::string_view text) {
  while (!text.empty()) {
    const bool is_inside = (static_cast<unsigned char>(text.back()) & 0xC0) == 0x80;
    text.remove_suffix(1);
    if (!is_inside) break;
  }
  return text;
}

// Counts of two events and of both together, out of `total`.
struct JointCount {
  int64_t a, b, both, total;
};

// The log-likelihood ratio of Dunning with the fixed alternative 0.99.
double abbreviation_ratio(const JointCount& n) {
  constexpr double kAlternative = 0.99, kTiny = 1e-8;
  const auto both = static_cast<double>(n.both), rest = static_cast<double>(n.a - n.both);
  const double p = static_cast<double>(n.b) / static_cast<double>(n.total);
  const double null = both * std::log(p + kTiny) + rest * std::log(1.0 - p + kTiny);
  const double other = both * std::log(kAlternative) + rest * std::log(1.0 - kAlternative);
  return -2.0 * (null - other);
}

// Logarithm of the probability of `hits` and `misses`; 0 if p is 0 or 1.
double log_binomial(int64_t hits, int64_t misses, double p) {
  if (p <= 0 || p >= 1) return 0;
  return static_cast<double>(hits) * std::log(p) + static_cast<double>(misses) * std::log(1.0 - p);
}

// The log-likelihood ratio of Dunning for the dependence of b on a.
double dependence_ratio(const JointCount& n) {
  const auto ratio = [](int64_t x, int64_t y) {
    return static_cast<double>(x) / static_cast<double>(y);
  };
  const int64_t only_a = n.a - n.both, only_b = n.b - n.both, neither = n.total - n.a - only_b;
  const double p = ratio(n.b, n.total), p_with = ratio(n.both, n.a);
  const double p_without = n.total == n.a ? 1.0 : ratio(only_b, n.total - n.a);
  double sum = log_binomial(n.both, only_a, p) + log_binomial(only_b, neither, p);
  if (only_a != 0) sum -= log_binomial(n.both, only_a, p_with);
  if (only_b != 0) sum -= log_binomial(only_b, neither, p_without);
  return -2.0 * sum;
}

}  // namespace

void PunktTrainer::add(std::string_view text) {
  ++texts_;
  read_tokens(text);
  classify_abbreviations();
  mark_tokens();
  read_orthography();
  read_pairs();
  tokens_.clear();
}

void PunktTrainer::read_tokens(std::string_view text) {
  PunktWords words(text);
  std::string name;
  for (PunktWord word; words.next(word);) {
    punkt_type_of(word, name);
    auto known = type_numbers_.find(name);
    if (known == type_numbers_.end()) {
      known = type_numbers_.emplace(name, narrow<uint32_t>(types_.size())).first;
      types_.push_back({.name = &known->first, .count = 0, .text = 0});
    }
    Type& type = types_[known->second];
    ++type.count;
    type.text = texts_;
    tokens_.push_back({known->second, flags_of_word(word, name)});
    with_period_ += word.ends_with_period() ? 1 : 0;
    ++total_;
  }
}

double PunktTrainer::abbreviation_score(std::string_view stem) const {
  const int64_t inner = std::count(stem.begin(), stem.end(), '.');
  const int64_t others = characters_of(stem) - inner;
  const int64_t with = count_of(std::string(stem) + "."), without = count_of(stem);
  const double ratio =
      abbreviation_ratio({.a = with + without, .b = with_period_, .both = with, .total = total_});
  return ratio * std::exp(static_cast<double>(-others)) * static_cast<double>(inner + 1) *
         std::pow(static_cast<double>(others), static_cast<double>(-without));
}

void PunktTrainer::classify_abbreviations() {
  PunktParameters::Words& known = parameters_.abbreviations;
  for (const Type& type : types_) {
    const std::string_view name = *type.name;
    if (type.text != texts_ || name == kPunktNumber || !has_letter(name)) continue;
    if (name.back() == '.') {
      const std::string_view stem = name.substr(0, name.size() - 1);
      if (!known.contains(name) && abbreviation_score(stem) >= kAbbreviationScore)
        known.emplace(stem);
    } else if (known.contains(name) && !(abbreviation_score(name) >= kAbbreviationScore)) {
      known.erase(std::string(name));
    }
  }
}

void PunktTrainer::mark_tokens() {
  for (Token& token : tokens_) {
    if ((token.flags & kIsEndMark) != 0) token.flags |= kIsBreak;
    const bool may_end = (token.flags & (kIsEndMark | kIsEllipsis | kEndsDoubled)) == 0 &&
                         (token.flags & kPeriodFinal) != 0;
    if (!may_end) continue;
    // A number is no abbreviation: its type has no period to remove.
    const std::string_view name = *types_[token.type].name;
    const std::string_view stem = name.substr(0, name.size() - 1);
    const bool is_abbreviation =
        name != kPunktNumber && is_punkt_abbreviation(stem, parameters_.abbreviations);
    token.flags |= is_abbreviation ? kIsAbbreviation : kIsBreak;
  }
  breaks_ += std::count_if(tokens_.begin(), tokens_.end(),
                           [](const Token& token) { return (token.flags & kIsBreak) != 0; });
}

std::string_view PunktTrainer::sentence_type(const Token& token) const {
  const std::string_view name = *types_[token.type].name;
  return (token.flags & kIsBreak) != 0 ? without_period(name) : name;
}

void PunktTrainer::read_orthography() {
  enum class Place : uint8_t { Begins, Inside, Unknown } place = Place::Inside;
  const auto flag_at = [&](uint32_t begins, uint32_t inside, uint32_t unknown) {
    return place == Place::Begins ? begins : place == Place::Inside ? inside : unknown;
  };
  for (const Token& token : tokens_) {
    if ((token.flags & kParagraphStart) != 0 && place != Place::Unknown) place = Place::Begins;
    if ((token.flags & kLineStart) != 0 && place == Place::Inside) place = Place::Unknown;
    uint32_t seen = 0;
    if ((token.flags & kFirstLower) != 0)
      seen = flag_at(kBeginsLower, kInsideLower, kUnknownLower);
    else if ((token.flags & kFirstUpper) != 0)
      seen = flag_at(kBeginsUpper, kInsideUpper, kUnknownUpper);
    if (seen != 0) {
      const std::string_view type = sentence_type(token);
      const auto known = parameters_.ortho_context.find(type);
      if (known == parameters_.ortho_context.end())
        parameters_.ortho_context.emplace(type, seen);
      else
        known->second |= seen;
    }
    if ((token.flags & kIsBreak) != 0)
      place = (token.flags & (kNumber | kInitial)) == 0 ? Place::Begins : Place::Unknown;
    else
      place = (token.flags & (kIsEllipsis | kIsAbbreviation)) != 0 ? Place::Unknown : Place::Inside;
  }
}

bool PunktTrainer::is_rare_abbreviation(const Token& token, const Token& next) const {
  if ((token.flags & kIsBreak) == 0) return false;
  const std::string_view type = sentence_type(token);
  // The original counts the word without its last letter, too.
  const int64_t count = count_of(type) + count_of(without_last_character(type));
  if (count >= kRareBelow || parameters_.abbreviations.contains(type)) return false;
  if ((next.flags & kInternalMark) != 0) return true;
  if ((next.flags & kFirstLower) == 0) return false;
  const uint32_t seen = parameters_.ortho(sentence_type(next));
  return (seen & kBeginsUpper) != 0 && (seen & kInsideUpper) == 0;
}

void PunktTrainer::read_pairs() {
  for (size_t i = 0; i + 1 < tokens_.size(); ++i) {
    const Token &token = tokens_[i], &next = tokens_[i + 1];
    if ((token.flags & kPeriodFinal) == 0) continue;
    const std::string_view type = without_period(*types_[token.type].name);
    if (is_rare_abbreviation(token, next)) parameters_.abbreviations.emplace(type);
    if ((token.flags & kIsBreak) == 0) continue;
    if ((token.flags & (kNumber | kInitial)) == 0) {
      if ((next.flags & kAllLetters) != 0) ++starters_[*types_[next.type].name];
    } else if (has_letter(*types_[token.type].name) && has_letter(*types_[next.type].name)) {
      ++pairs_[format("{}\t{}", type, sentence_type(next))];
    }
  }
}

int64_t PunktTrainer::count_of(std::string_view type) const {
  const auto known = type_numbers_.find(type);
  return known == type_numbers_.end() ? 0 : types_[known->second].count;
}

int64_t PunktTrainer::count_with_period(std::string_view type) const {
  return count_of(type) + count_of(std::string(type) + ".");
}

PunktParameters PunktTrainer::finish() const {
  PunktParameters found = parameters_;
  // True if the two occur together more often than by chance.
  const auto attract = [](const JointCount& n) {
    return static_cast<double>(n.total) / static_cast<double>(n.a) >
           static_cast<double>(n.b) / static_cast<double>(n.both);
  };
  for (const auto& [type, count] : starters_) {
    const JointCount n{.a = breaks_, .b = count_with_period(type), .both = count, .total = total_};
    if (n.b >= count && dependence_ratio(n) >= kStarterScore && attract(n))
      found.sentence_starters.insert(type);
  }
  for (const auto& [pair, count] : pairs_) {
    const size_t tab = pair.find('\t');
    const std::string_view first = std::string_view(pair).substr(0, tab);
    const std::string_view second = std::string_view(pair).substr(tab + 1);
    if (found.sentence_starters.contains(second)) continue;
    const JointCount n{.a = count_with_period(first),
                       .b = count_with_period(second),
                       .both = count,
                       .total = total_};
    if (count > 1 && count <= std::min(n.a, n.b) && dependence_ratio(n) >= kCollocationScore &&
        attract(n))
      found.collocations.insert(pair);
  }
  return found;
}

}  // namespace bev
