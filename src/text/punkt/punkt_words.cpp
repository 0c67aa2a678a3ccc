#include "text/punkt/punkt_words.h"

#include "text/unicode/letter_case.h"
#include "text/utf8.h"

namespace bev {

namespace {

// Roles of an ASCII character in finding words.
enum AsciiRole : uint8_t { kBlankRole = 1, kNonWordRole = 2, kNoStartRole = 4, kMaybeEndRole = 8 };

constexpr std::array<uint8_t, 128> kAsciiRole = [] {
  std::array<uint8_t, 128> roles{};
  const auto mark = [&](std::string_view characters, AsciiRole role) {
    for (const char c : characters) roles[static_cast<size_t>(c)] |= role;
  };
  mark(" \t\n\v\f\r", kBlankRole);
  mark(")\";}]*:@'({[?!", kNonWordRole);
  mark("(\"`{[:;&#*@)}]-,", kNoStartRole);
  mark("-.,", kMaybeEndRole);
  return roles;
}();

uint8_t role_of(char c) { return kAsciiRole[static_cast<size_t>(c)]; }

// The length of a run of at least two hyphens or two periods, or of three or more periods with one
// white space character between each two; 0: none of these begins here.
size_t multi_character_mark(std::string_view text) {
  const char c = text.empty() ? '\0' : text.front();
  if (c != '-' && c != '.') return 0;
  size_t run = 1;
  while (run < text.size() && text[run] == c) ++run;
  if (run >= 2) return run;
  if (c == '-') return 0;
  size_t periods = 1, end = 1;
  for (;;) {
    const size_t blank = punkt_white_space_at(text.substr(end));
    if (blank == 0 || end + blank >= text.size() || text[end + blank] != '.') break;
    end += blank + 1;
    ++periods;
  }
  return periods >= 3 ? end : 0;
}

// Whether multi_character_mark finds one, in constant time.
bool begins_multi_character_mark(std::string_view text) {
  if (text.empty() || (text.front() != '-' && text.front() != '.')) return false;
  if (text.size() > 1 && text[1] == text[0]) return true;
  if (text.front() == '-') return false;
  for (int i = 0; i < 2; ++i) {
    text.remove_prefix(1);
    const size_t blank = punkt_white_space_at(text);
    text.remove_prefix(blank);
    if (blank == 0 || !text.starts_with('.')) return false;
  }
  return true;
}

// Whether a word ends before the text, unless a comma follows.
bool ends_word(std::string_view text) {
  return text.empty() || punkt_white_space_at(text) > 0 || punkt_non_word_at(text) > 0 ||
         begins_multi_character_mark(text);
}

// The length of the word that the line begins with. REQUIRES: it begins with no white space.
size_t word_length(std::string_view line) {
  if (const size_t mark = multi_character_mark(line)) return mark;
  size_t at = first_character(line).length;
  if (is_ascii(line.front()) && (role_of(line.front()) & kNoStartRole) != 0) return at;
  while (at < line.size()) {
    const char c = line[at];
    if (is_ascii(c)) {
      const uint8_t role = role_of(c);
      if ((role & (kBlankRole | kNonWordRole)) != 0) break;
      if ((role & kMaybeEndRole) != 0 && (c == ',' ? ends_word(line.substr(at + 1))
                                                   : begins_multi_character_mark(line.substr(at))))
        break;
      ++at;
    } else {
      const std::string_view rest = line.substr(at);
      if (punkt_white_space_at(rest) > 0 || punkt_non_word_at(rest) > 0) break;
      at += first_character(rest).length;
    }
  }
  return at;
}

bool has_flag(const Utf8Character& c, LetterCaseFlag flag) {
  return LetterCase::table().has(c.code, flag);
}

}  // namespace

size_t punkt_white_space_at(std::string_view text) {
  if (text.empty()) return 0;
  if (is_ascii(text.front())) return (role_of(text.front()) & kBlankRole) != 0 ? 1 : 0;
  return white_space_at(text);
}

size_t punkt_non_word_at(std::string_view text) {
  if (text.empty()) return 0;
  if (is_ascii(text.front())) return (role_of(text.front()) & kNonWordRole) != 0 ? 1 : 0;
  for (const std::string_view quote : {"\u2018", "\u2019", "\u201C", "\u201D", "\u00AB", "\u00BB"})
    if (text.starts_with(quote)) return quote.size();
  return 0;
}

bool PunktWord::is_ellipsis() const {
  return text.size() >= 2 && text.find_first_not_of('.') == std::string_view::npos;
}

bool PunktWord::is_initial() const {
  const Utf8Character first = first_character(text);
  return text.size() == first.length + 1 && text.back() == '.' && has_flag(first, kLetter);
}

bool PunktWord::is_letters() const {
  for (std::string_view rest = text; !rest.empty();) {
    const Utf8Character c = first_character(rest);
    if (!has_flag(c, kLetter)) return false;
    rest.remove_prefix(c.length);
  }
  return true;
}

bool PunktWord::is_number() const {
  std::string_view rest = text;
  if (rest.starts_with('-')) rest.remove_prefix(1);
  if (rest.starts_with('.') || rest.starts_with(',')) rest.remove_prefix(1);
  if (rest.empty() || !has_flag(first_character(rest), kDecimal)) return false;
  while (!rest.empty()) {
    const Utf8Character c = first_character(rest);
    if (c.code != ',' && c.code != '.' && c.code != '-' && !has_flag(c, kDecimal)) return false;
    rest.remove_prefix(c.length);
  }
  return true;
}

bool PunktWord::begins_upper() const { return has_flag(first_character(text), kUpper); }
bool PunktWord::begins_lower() const { return has_flag(first_character(text), kLower); }

bool PunktWords::next_line() {
  while (has_more_lines_) {
    const size_t newline = rest_.find('\n');
    line_ = rest_.substr(0, newline);
    has_more_lines_ = newline != std::string_view::npos;
    rest_.remove_prefix(has_more_lines_ ? newline + 1 : rest_.size());
    if (!strip(line_).empty()) {
      starts_line_ = true;
      return true;
    }
    starts_paragraph_ = true;
  }
  return false;
}

bool PunktWords::next(PunktWord& word) {
  for (;;) {
    while (const size_t blank = punkt_white_space_at(line_)) line_.remove_prefix(blank);
    if (!line_.empty()) break;
    if (!next_line()) return false;
  }
  const size_t length = word_length(line_);
  word = {.text = line_.substr(0, length),
          .starts_line = starts_line_,
          .starts_paragraph = starts_paragraph_};
  starts_line_ = starts_paragraph_ = false;
  line_.remove_prefix(length);
  return true;
}

void punkt_type_of(const PunktWord& word, std::string& type) {
  type.clear();
  if (word.is_number())
    type = kPunktNumber;
  else
    append_python_lower(word.text, type);
}

std::string_view without_period(std::string_view type) {
  if (type.size() > 1 && type.back() == '.') type.remove_suffix(1);
  return type;
}

bool has_letter(std::string_view type) {
  while (!type.empty()) {
    const Utf8Character c = first_character(type);
    if (has_flag(c, kLetter)) return true;
    type.remove_prefix(c.length);
  }
  return false;
}

}  // namespace bev
