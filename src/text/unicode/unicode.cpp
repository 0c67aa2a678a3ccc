#include "text/unicode/unicode.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <vector>

#include "text/unicode/generated/char_flag_ranges.h"
#include "text/utf8.h"

namespace bev {

const UnicodeClasses& UnicodeClasses::table() {
  static const UnicodeClasses table;
  return table;
}

UnicodeClasses::UnicodeClasses()
    : classes_([walk = RangeWalk(char_class_ranges().data(),
                                 char_class_ranges().data() + char_class_ranges().size())](
                   char32_t c) mutable {
        const CharClassRange* range = walk.at(c);
        return range == nullptr ? CharClass::Other : range->char_class;
      }) {}

const CharFlags& CharFlags::table() {
  static const CharFlags table;
  return table;
}

CharFlags::CharFlags()
    : flags_([walk = RangeWalk(char_flag_ranges().data(),
                               char_flag_ranges().data() + char_flag_ranges().size())](
                 char32_t c) mutable {
        const CharFlagRange* range = walk.at(c);
        return range == nullptr ? uint16_t{0} : range->flags;
      }) {}

namespace {

// Hangul syllables are arithmetic: 19 leading consonants, 21 vowels, 27 trailing ones or none.
constexpr char32_t kSyllables = 0xAC00, kLeads = 0x1100, kVowels = 0x1161, kTails = 0x11A7;
constexpr char32_t kLeadCount = 19, kVowelCount = 21, kTailCount = 28;
constexpr char32_t kSyllableCount = kLeadCount * kVowelCount * kTailCount;

struct Character {
  char32_t code;
  uint8_t combining_class;
};

uint64_t pair_of(char32_t first, char32_t second) { return uint64_t{first} << 32 | second; }

class Forms {
 public:
  static const Forms& table() {
    static const Forms forms;
    return forms;
  }

  uint8_t combining_class(char32_t c) const { return combining_.of(c); }

  void decompose(char32_t c, std::vector<Character>& characters) const {
    if (c < 0xC0) return characters.push_back({c, 0});
    if (c >= kSyllables && c < kSyllables + kSyllableCount) {
      const char32_t i = c - kSyllables, tail = i % kTailCount;
      characters.push_back({kLeads + i / kTailCount / kVowelCount, 0});
      characters.push_back({kVowels + i / kTailCount % kVowelCount, 0});
      if (tail > 0) characters.push_back({kTails + tail, 0});
      return;
    }
    const uint16_t number = decomposition_.of(c);
    if (number == 0) return characters.push_back({c, combining_class(c)});
    const Decomposition& step = decompositions()[number - 1u];
    decompose(step.first, characters);
    if (step.second != 0) decompose(step.second, characters);
  }

  // 0 when the two do not compose.
  char32_t compose(char32_t first, char32_t second) const {
    if (first >= kLeads && first < kLeads + kLeadCount && second >= kVowels &&
        second < kVowels + kVowelCount)
      return kSyllables + ((first - kLeads) * kVowelCount + (second - kVowels)) * kTailCount;
    if (first >= kSyllables && first < kSyllables + kSyllableCount &&
        (first - kSyllables) % kTailCount == 0 && second > kTails && second < kTails + kTailCount)
      return first + (second - kTails);
    const auto known = compositions_.find(pair_of(first, second));
    return known == compositions_.end() ? 0 : known->second;
  }

  void lower(char32_t c, std::string& text) const {
    if (c != kDottedI) return append_utf8(static_cast<char32_t>(lower_.of(c)) + c, text);
    append_utf8('i', text);
    append_utf8(0x307, text);
  }

 private:
  static constexpr char32_t kDottedI = 0x130;  // the only one whose lower case is two characters

  Forms()
      : combining_([walk = RangeWalk(combining_ranges().data(),
                                     combining_ranges().data() + combining_ranges().size())](
                       char32_t c) mutable {
          const CombiningRange* range = walk.at(c);
          return range == nullptr ? uint8_t{0} : range->combining_class;
        }),
        decomposition_([i = size_t{0}](char32_t c) mutable {
          while (i < decompositions().size() && decompositions()[i].code < c) ++i;
          const bool here = i < decompositions().size() && decompositions()[i].code == c;
          return static_cast<uint16_t>(here ? i + 1 : 0);
        }),
        lower_([walk = RangeWalk(lower_case_ranges().data(),
                                 lower_case_ranges().data() + lower_case_ranges().size())](
                   char32_t c) mutable {
          const LowerCaseRange* range = walk.at(c);
          const bool here = range != nullptr && (c - range->first) % range->stride == 0;
          return here ? range->difference : 0;
        }) {
    for (const Decomposition& step : decompositions())
      if (step.composes) compositions_.emplace(pair_of(step.first, step.second), step.code);
  }

  CodePointTable<uint8_t> combining_;
  CodePointTable<uint16_t> decomposition_;  // one more than the place in the list; 0: none
  CodePointTable<int32_t> lower_;           // what is added
  std::unordered_map<uint64_t, char32_t> compositions_;
};

std::vector<Character> decomposed_characters(std::string_view text) {
  const Forms& forms = Forms::table();
  std::vector<Character> characters;
  characters.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Utf8Character next = utf8_character(text.data() + at);
    forms.decompose(next.code, characters);
    at += next.length;
  }
  // Marks between two characters that are none are put in the order of their classes.
  for (size_t begin = 0; begin < characters.size();) {
    size_t end = begin + 1;
    if (characters[begin].combining_class != 0) {
      while (end < characters.size() && characters[end].combining_class != 0) ++end;
      std::stable_sort(characters.begin() + static_cast<std::ptrdiff_t>(begin),
                       characters.begin() + static_cast<std::ptrdiff_t>(end),
                       [](const Character& a, const Character& b) {
                         return a.combining_class < b.combining_class;
                       });
    }
    begin = end;
  }
  return characters;
}

void append(const std::vector<Character>& characters, std::string& text) {
  for (const Character& each : characters) append_utf8(each.code, text);
}

std::vector<Character> composed_characters(std::string_view text) {
  const Forms& forms = Forms::table();
  std::vector<Character> kept;
  std::optional<size_t> starter;  // the last character in `kept` that others may join
  for (const Character& next : decomposed_characters(text)) {
    if (starter) {
      // Between the two must stand nothing, or only marks of lower classes.
      const bool adjacent = *starter + 1 == kept.size();
      const bool reachable = adjacent || kept.back().combining_class < next.combining_class;
      if (const char32_t joined = reachable ? forms.compose(kept[*starter].code, next.code) : 0) {
        kept[*starter].code = joined;
        continue;
      }
    }
    if (next.combining_class == 0) starter = kept.size();
    kept.push_back(next);
  }
  return kept;
}

// Applies `form` to what is not ASCII, each run together with the `before` ASCII characters in
// front of it: the others stay what they are.
template <class Form>
std::string around_ascii(std::string_view text, size_t before, Form&& form) {
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && is_ascii(text[end])) ++end;
    const size_t kept = end == text.size() ? end : std::max(at, end - std::min(before, end));
    result += text.substr(at, kept - at);
    while (end < text.size() && !is_ascii(text[end])) ++end;
    append(form(text.substr(kept, end - kept)), result);
    at = end;
  }
  return result;
}

}  // namespace

std::string decomposed(std::string_view text) {
  return around_ascii(text, 0, decomposed_characters);
}

std::string composed(std::string_view text) {
  // A mark may join the letter in front of it.
  return around_ascii(text, 1, composed_characters);
}

std::string lower_cased(std::string_view text) {
  std::string lower;
  lower.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Utf8Character next = utf8_character(text.data() + at);
    append_lower_case(next.code, lower);
    at += next.length;
  }
  return lower;
}

void append_lower_case(char32_t c, std::string& text) {
  if (c < 0x80) {
    text += static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
  } else {
    Forms::table().lower(c, text);
  }
}

}  // namespace bev
