#include "text/unicode/letter_case.h"

#include <algorithm>

namespace bev {

namespace {

constexpr char32_t kCapitalSigma = 0x3A3, kFinalSigma = 0x3C2;

// The last character of valid or invalid UTF-8. REQUIRES: bytes is not empty.
Utf8Character last_character(std::string_view bytes) {
  for (size_t length = 1; length <= std::min<size_t>(4, bytes.size()); ++length) {
    const Utf8Character c = first_character(bytes.substr(bytes.size() - length));
    if (c.length == length && (length > 1 || is_ascii(bytes.back()))) return c;
  }
  return {0xFFFD, 1};
}

// Whether a capital sigma between the two strings ends a word: a cased letter precedes it and none
// follows. Case-ignorable characters on either side are skipped.
bool is_word_end(std::string_view before, std::string_view after) {
  const LetterCase& table = LetterCase::table();
  bool follows_letter = false;
  while (!before.empty()) {
    const Utf8Character c = last_character(before);
    before.remove_suffix(c.length);
    if (table.has(c.code, kCaseIgnorable)) continue;
    follows_letter = table.has(c.code, kCased);
    break;
  }
  if (!follows_letter) return false;
  while (!after.empty()) {
    const Utf8Character c = first_character(after);
    after.remove_prefix(c.length);
    if (!table.has(c.code, kCaseIgnorable)) return !table.has(c.code, kCased);
  }
  return true;
}

}  // namespace

const LetterCase& LetterCase::table() {
  static const LetterCase table;
  return table;
}

LetterCase::LetterCase()
    : flags_([walk = RangeWalk(letter_case_ranges().data(),
                               letter_case_ranges().data() + letter_case_ranges().size())](
                 char32_t c) mutable {
        const LetterCaseRange* range = walk.at(c);
        return range == nullptr ? uint8_t{0} : range->flags;
      }) {}

Utf8Character first_character(std::string_view bytes) {
  if (is_ascii(bytes.front())) return {static_cast<char32_t>(bytes.front()), 1};
  const auto first = static_cast<unsigned char>(bytes.front());
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  const std::string_view character = bytes.substr(0, length);
  if (character.size() < length || valid_utf8_prefix(character) < length) return {0xFFFD, 1};
  return utf8_character(character.data());
}

void append_python_lower(std::string_view text, std::string& lower) {
  for (size_t at = 0; at < text.size();) {
    if (is_ascii(text[at])) {
      const char c = text[at++];
      lower += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      continue;
    }
    const std::string_view rest = text.substr(at);
    const Utf8Character c = first_character(rest);
    if (c.code == kCapitalSigma && is_word_end(text.substr(0, at), rest.substr(c.length)))
      append_utf8(kFinalSigma, lower);
    else if (c.length == 1)
      lower += text[at];  // not valid UTF-8: stays
    else
      append_lower_case(c.code, lower);
    at += c.length;
  }
}

}  // namespace bev
