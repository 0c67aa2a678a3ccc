#include "text/punkt/punkt_splitter.h"

#include <algorithm>
#include <optional>

#include "text/unicode/letter_case.h"
#include "text/utf8.h"

namespace bev {

namespace {

// A mark that may end a sentence.
struct EndMatch {
  size_t begin;  // of the text that the end belongs to: the mark, or with Keep its whole token
  size_t end;    // of the sentence
  size_t next;   // where the next sentence begins
  size_t after;  // the end of the token after the mark
};

// Finds the marks that may end a sentence, from left to right.
class EndFinder {
 public:
  EndFinder(std::string_view text, SentenceBlanks blanks) : text_(text), blanks_(blanks) {}

  std::optional<EndMatch> next() {
    return blanks_ == SentenceBlanks::Keep ? next_token() : next_mark();
  }

 private:
  // A mark before a quote or bracket, or before white space and another token.
  std::optional<EndMatch> next_mark() {
    while (at_ < text_.size()) {
      if (!is_punkt_end(text_[at_++])) continue;
      if (const size_t length = punkt_non_word_at(text_.substr(at_)))
        return EndMatch{.begin = at_ - 1, .end = at_, .next = at_, .after = at_ + length};
      const size_t token = after_blanks(at_);
      if (token > at_ && token < text_.size())
        return EndMatch{.begin = at_ - 1, .end = at_, .next = token, .after = after_token(token)};
    }
    return std::nullopt;
  }

  // The last mark of a token that has a character after the white space that may follow. The
  // sentence takes that white space.
  std::optional<EndMatch> next_token() {
    for (;;) {
      const size_t begin = after_blanks(at_);
      if (begin == text_.size()) return std::nullopt;
      const size_t token_end = after_token(begin);
      const size_t following = after_blanks(token_end);
      at_ = token_end;
      for (size_t mark = token_end; mark-- > begin;) {
        if (!is_punkt_end(text_[mark])) continue;
        const size_t end = mark + 1 == token_end ? following : mark + 1;
        if (end == text_.size()) continue;
        at_ = end;
        const size_t length = punkt_non_word_at(text_.substr(end));
        return EndMatch{.begin = begin,
                        .end = end,
                        .next = end,
                        .after = length > 0 ? end + length : after_token(end)};
      }
    }
  }

  size_t after_blanks(size_t at) const {
    while (const size_t blank = punkt_white_space_at(text_.substr(at))) at += blank;
    return at;
  }

  size_t after_token(size_t at) const {
    while (at < text_.size() && punkt_white_space_at(text_.substr(at)) == 0) ++at;
    return at;
  }

  std::string_view text_;
  SentenceBlanks blanks_;
  size_t at_ = 0;
};

// The place after the last ASCII white space in [from, to); `otherwise` if there is none, or only
// at `from`.
size_t word_begin(std::string_view text, size_t from, size_t to, size_t otherwise) {
  while (to > from + 1 &&
         !(is_ascii(text[to - 1]) && punkt_white_space_at(text.substr(to - 1)) > 0))
    --to;
  return to > from + 1 ? to : otherwise;
}

size_t length_without_end_blanks(std::string_view text) {
  const std::string_view stripped = strip(text);
  return stripped.empty() ? 0
                          : static_cast<size_t>(stripped.data() - text.data()) + stripped.size();
}

size_t closers_at(std::string_view text) {
  size_t length = 0;
  while (length < text.size()) {
    const std::string_view rest = text.substr(length);
    if (is_ascii(rest.front())) {
      if (std::string_view("\"')]}").find(rest.front()) == std::string_view::npos) break;
      ++length;
    } else {
      const size_t quote = punkt_non_word_at(rest);
      if (quote == 0) break;
      length += quote;
    }
  }
  return length;
}

}  // namespace

void PunktSplitter::split(std::string_view text, SentenceBlanks blanks,
                          std::vector<std::string_view>& sentences) {
  spans_.clear();
  size_t begin = 0;  // of the sentence
  const auto judge = [&](const EndMatch& match, size_t context) {
    if (!contains_break(text.substr(context, match.after - context))) return;
    spans_.push_back({begin, match.end});
    begin = match.next;
  };
  EndFinder ends(text, blanks);
  std::optional<EndMatch> before;
  size_t word = 0;  // where the word before `before` begins
  while (const std::optional<EndMatch> match = ends.next()) {
    const size_t from = before ? before->begin : 0;
    const size_t next_word = word_begin(text, from, match->begin, word);
    // The last mark of a word decides; earlier ones are skipped.
    if (before && from <= next_word) judge(*before, word);
    before = match;
    word = next_word;
  }
  if (before) judge(*before, word);
  spans_.push_back({begin, length_without_end_blanks(text)});
  emit(text, sentences);
}

void PunktSplitter::emit(std::string_view text, std::vector<std::string_view>& sentences) const {
  size_t moved = 0;  // bytes at the beginning of the span that the span before took
  for (size_t i = 0; i < spans_.size(); ++i) {
    const size_t begin = spans_[i].begin + moved;
    size_t end = spans_[i].end, closers = 0;
    moved = 0;
    if (i + 1 < spans_.size()) {
      const auto [next_begin, next_end] = spans_[i + 1];
      const std::string_view next =
          text.substr(next_begin, std::max(next_begin, next_end) - next_begin);
      closers = closers_at(next);
      size_t blanks = closers;
      while (const size_t blank = punkt_white_space_at(next.substr(blanks))) blanks += blank;
      if (closers > 0 &&
          (blanks > closers || blanks == next.size() || next.substr(closers).starts_with("--"))) {
        end = next_begin + closers;
        moved = blanks;
      }
    }
    if (begin < end) sentences.push_back(text.substr(begin, end - begin));
  }
}

bool PunktSplitter::contains_break(std::string_view context) {
  PunktWords words(context);
  PunktWord word, next;
  if (!words.next(word)) return false;
  for (; words.next(next); word = next)
    if (is_break(word, next)) return true;
  return false;
}

PunktSplitter::Mark PunktSplitter::mark_of(const PunktWord& word, std::string_view stem) const {
  if (word.is_end_mark()) return Mark::Break;
  if (word.is_ellipsis()) return Mark::Ellipsis;
  if (word.text.ends_with("..")) return Mark::None;
  return is_punkt_abbreviation(stem, parameters_->abbreviations) ? Mark::Abbreviation : Mark::Break;
}

PunktSplitter::Mark PunktSplitter::read_period_word(const PunktWord& word) {
  stem_.clear();
  append_python_lower(word.text.substr(0, word.text.size() - 1), stem_);
  if (word.is_number())
    type_ = kPunktNumber;
  else
    type_ = stem_.empty() ? "." : stem_;
  return mark_of(word, stem_);
}

void PunktSplitter::read_next_word(const PunktWord& word) {
  punkt_type_of(word, next_type_);
  if (next_type_.size() < 2 || next_type_.back() != '.') return;
  next_type_.pop_back();
  if (mark_of(word, next_type_) != Mark::Break) next_type_ += '.';
}

bool PunktSplitter::is_break(const PunktWord& word, const PunktWord& next) {
  if (!word.ends_with_period()) return word.is_end_mark();
  const Mark mark = read_period_word(word);
  read_next_word(next);
  (pair_ = type_) += '\t';
  if (parameters_->collocations.contains(pair_ += next_type_)) return false;
  const bool is_initial = word.is_initial();
  if ((mark == Mark::Abbreviation || mark == Mark::Ellipsis) && !is_initial) {
    if (starts_sentence(next) == Starts::Yes) return true;
    if (next.begins_upper() && parameters_->sentence_starters.contains(next_type_)) return true;
  }
  if (is_initial || type_ == kPunktNumber) {
    const Starts starts = starts_sentence(next);
    if (starts == Starts::No) return false;
    // "J. Bach": the next word is known in upper case only.
    if (starts == Starts::Unknown && is_initial && next.begins_upper() &&
        (parameters_->ortho(next_type_) & kAnyLower) == 0)
      return false;
  }
  return mark == Mark::Break;
}

PunktSplitter::Starts PunktSplitter::starts_sentence(const PunktWord& word) const {
  if (word.text.size() == 1 && std::string_view(";:,.!?").find(word.text) != std::string_view::npos)
    return Starts::No;
  const uint32_t seen = parameters_->ortho(next_type_);
  if (word.begins_upper() && (seen & kAnyLower) != 0 && (seen & kInsideUpper) == 0)
    return Starts::Yes;
  if (word.begins_lower() && ((seen & kAnyUpper) != 0 || (seen & kBeginsLower) == 0))
    return Starts::No;
  return Starts::Unknown;
}

}  // namespace bev
