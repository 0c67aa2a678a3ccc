#include "text/sentence_splitter.h"

#include <algorithm>
#include <array>
#include <string>

namespace bev {

namespace {

// In lower case, without their last period, sorted. A period behind one of these ends a sentence
// only at a blank line.
constexpr std::array<std::string_view, 84> kAbbreviations{
    "a.d",    "a.k.a", "adm",  "al",  "apr",  "assn", "assoc", "aug",  "ave", "b.c", "bldg",
    "blvd",   "bros",  "c",    "ca",  "capt", "cf",   "ch",    "cmdr", "co",  "col", "comdr",
    "corp",   "cpl",   "ct",   "d.c", "dec",  "dept", "dr",    "e.g",  "ed",  "eds", "eq",
    "esp",    "esq",   "est",  "etc", "ex",   "feb",  "fig",   "figs", "ft",  "gen", "gov",
    "hon",    "i.e",   "inc",  "jan", "jr",   "jul",  "jun",   "lt",   "ltd", "maj", "mar",
    "messrs", "mr",    "mrs",  "ms",  "mt",   "no",   "nos",   "nov",  "oct", "op",  "p",
    "ph.d",   "pp",    "prof", "rep", "rev",  "sen",  "sep",   "sept", "sgt", "sr",  "st",
    "u.k",    "u.s",   "univ", "v",   "viz",  "vol",  "vs"};
static_assert(std::is_sorted(kAbbreviations.begin(), kAbbreviations.end()));

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Quotes and brackets that may stand between the mark and the white space.
size_t closer_at(std::string_view text) {
  for (const std::string_view closer : {"\"", "'", ")", "]", "}", "\u201D", "\u2019", "\u00BB"})
    if (text.starts_with(closer)) return closer.size();
  return 0;
}

// The word before a period: back to white space or an opening bracket or quote, in lower case.
std::string word_before(std::string_view text) {
  size_t begin = text.size();
  while (begin > 0 && !is_space(text[begin - 1]) && text[begin - 1] != '(' &&
         text[begin - 1] != '[' && text[begin - 1] != '"' && text[begin - 1] != '\'' &&
         text.size() - begin < 16)
    --begin;
  std::string word(text.substr(begin));
  for (char& c : word)
    if (is_upper(c)) c = static_cast<char>(c - 'A' + 'a');
  return word;
}

// A period that belongs to the word before it.
bool is_part_of_word(std::string_view before, std::string_view after) {
  if (before.ends_with('.')) return !after.empty() && is_lower(after.front());  // an ellipsis
  const std::string word = word_before(before);
  if (word.empty()) return false;
  const bool letter = word.size() == 1 && is_lower(word[0]);
  // "J. Smith", but not "plan B." at the end and not "I."
  if (letter && word != "i") return !after.empty() && (is_upper(after.front()) || letter);
  const bool number = std::all_of(word.begin(), word.end(), is_digit);
  // "1. First": a number alone on its line so far.
  const size_t line = before.size() - word.size();
  if (number && word.size() <= 2 && (line == 0 || before[line - 1] == '\n')) return true;
  return std::binary_search(kAbbreviations.begin(), kAbbreviations.end(), word);
}

// Whether a sentence can begin so: anything but a small letter or a mark that continues.
bool can_begin(std::string_view rest) {
  if (rest.empty()) return true;
  const char c = rest.front();
  return !is_lower(c) && std::string_view(".,;:-)").find(c) == std::string_view::npos;
}

class Splitter {
 public:
  Splitter(std::string_view text, SentenceBlanks blanks, std::vector<std::string_view>& sentences)
      : text_(text), blanks_(blanks), sentences_(sentences) {}

  void split() {
    for (size_t at = 0; at < text_.size();) {
      const char c = text_[at];
      if (c == '.' || c == '!' || c == '?') {
        at = mark(at);
      } else if (c == '\n' && blank_line_follows(at)) {
        at = behind_blanks(at);
        end_at(at);
      } else {
        ++at;
      }
    }
    end_at(text_.size());
  }

 private:
  size_t behind_blanks(size_t at) const {
    while (at < text_.size() && is_space(text_[at])) ++at;
    return at;
  }

  bool blank_line_follows(size_t at) const {
    for (++at; at < text_.size() && is_space(text_[at]); ++at)
      if (text_[at] == '\n') return true;
    return false;
  }

  // Where the search goes on behind the marks at `at`.
  size_t mark(size_t at) {
    const size_t first = at;
    while (at < text_.size() && (text_[at] == '.' || text_[at] == '!' || text_[at] == '?')) ++at;
    const bool period = at - first == 1 && text_[first] == '.';
    for (size_t closer = closer_at(text_.substr(at)); closer > 0;
         closer = closer_at(text_.substr(at)))
      at += closer;
    const size_t next = behind_blanks(at);
    if (next == at) return at;  // no white space: a number, an address
    const std::string_view rest = text_.substr(next);
    const bool ellipsis = at - first >= 2 && text_[first] == '.';
    if (!can_begin(rest) || (ellipsis && !rest.empty() && is_lower(rest.front()))) return next;
    if (period && is_part_of_word(text_.substr(0, first), rest)) return at;
    end_at(next);
    return next;
  }

  void end_at(size_t end) {
    std::string_view sentence = text_.substr(begin_, end - begin_);
    if (blanks_ == SentenceBlanks::Trim) {
      while (!sentence.empty() && is_space(sentence.front())) sentence.remove_prefix(1);
      while (!sentence.empty() && is_space(sentence.back())) sentence.remove_suffix(1);
    }
    if (!sentence.empty()) sentences_.push_back(sentence);
    begin_ = end;
  }

  std::string_view text_;
  SentenceBlanks blanks_;
  std::vector<std::string_view>& sentences_;
  size_t begin_ = 0;  // of the sentence
};

}  // namespace

void split_sentences(std::string_view text, SentenceBlanks blanks,
                     std::vector<std::string_view>& sentences) {
  Splitter(text, blanks, sentences).split();
}

}  // namespace bev
