#include "text/bpe/bpe_pre_tokenizer.h"

#include "text/unicode/unicode.h"
#include "text/utf8.h"

namespace bev {

namespace {

// Of 's 't 'm 'd 're 've 'll at the start of the text; 0 when there is none.
size_t contraction_length(const char* at, const char* end) {
  if (end - at < 2) return 0;
  const char c = at[1];
  if (c == 's' || c == 't' || c == 'm' || c == 'd') return 2;
  if (end - at < 3) return 0;
  const char second = at[2];
  const bool three =
      (c == 'r' && second == 'e') || (c == 'v' && second == 'e') || (c == 'l' && second == 'l');
  return three ? 3 : 0;
}

}  // namespace

bool Gpt2PreTokenizer::next(std::string_view& piece) {
  if (at_ == end_) return false;
  const char* begin = at_;
  const char* at = begin;
  if (const size_t length = *at == '\'' ? contraction_length(at, end_) : 0; length > 0) {
    at_ = at + length;
  } else {
    // A blank belongs to what follows it, unless that is white space or the end.
    if (*at == ' ' && end_ - at > 1) ++at;
    const CharClass char_class = class_at(at);
    switch (char_class) {
      case CharClass::Letter: at_ = behind_letters(at); break;
      case CharClass::Space: at_ = behind_white_space(begin); break;
      default: at_ = behind_all(char_class, at); break;
    }
  }
  piece = {begin, static_cast<size_t>(at_ - begin)};
  return true;
}

CharClass Gpt2PreTokenizer::class_at(const char* at) const {
  if (is_ascii(*at)) return kAsciiClass[static_cast<unsigned char>(*at)];
  return classes_.of(utf8_character(at).code);
}

const char* Gpt2PreTokenizer::behind_letters(const char* at) const {
  while (end_ - at >= 8) {
    const size_t letters = letters_of_eight(at);
    at += letters;
    if (letters == 8) continue;
    if (is_ascii(*at)) return at;
    const Utf8Character next = utf8_character(at);
    if (classes_.of(next.code) != CharClass::Letter) return at;
    at += next.length;
  }
  return behind_all(CharClass::Letter, at);
}

const char* Gpt2PreTokenizer::behind_all(CharClass char_class, const char* at) const {
  while (at < end_) {
    if (is_ascii(*at)) {
      if (kAsciiClass[static_cast<unsigned char>(*at)] != char_class) break;
      ++at;
    } else {
      const Utf8Character next = utf8_character(at);
      if (classes_.of(next.code) != char_class) break;
      at += next.length;
    }
  }
  return at;
}

// The last white space before something else is a piece of its own, or begins the next one; white
// space at the end of the text stays together.
const char* Gpt2PreTokenizer::behind_white_space(const char* at) const {
  const char* begin = at;
  const char* last = at;
  while (at < end_ && class_at(at) == CharClass::Space) {
    last = at;
    at += utf8_character(at).length;
  }
  return at == end_ || last == begin ? at : last;
}

namespace {

bool is_line_end(char c) { return c == '\r' || c == '\n'; }

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

// Of 's 't 'm 'd 're 've 'll at the start of the text, in either case; 0 when there is none. The
// long s is an s in another case.
size_t any_case_contraction(const char* at, const char* end) {
  const auto left = static_cast<size_t>(end - at);
  if (left < 2) return 0;
  const char c = lower(at[1]);
  if (c == 's' || c == 't' || c == 'm' || c == 'd') return 2;
  if (left < 3) return 0;
  if (at[1] == '\xC5' && at[2] == '\xBF') return 3;
  const char second = lower(at[2]);
  const bool three =
      (c == 'r' && second == 'e') || (c == 'v' && second == 'e') || (c == 'l' && second == 'l');
  return three ? 3 : 0;
}

}  // namespace

bool Llama3PreTokenizer::next(std::string_view& piece) {
  if (at_ == end_) return false;
  const char* begin = at_;
  at_ = behind_piece(begin);
  piece = {begin, static_cast<size_t>(at_ - begin)};
  return true;
}

const char* Llama3PreTokenizer::behind_piece(const char* at) const {
  if (*at == '\'')
    if (const size_t length = any_case_contraction(at, end_)) return at + length;
  const Character first = character_at(at);
  if (first.char_class == CharClass::Letter) return behind_letters(at);
  if (first.char_class == CharClass::Number) return behind_numbers(at);
  // One character of any other kind, a line end excepted, belongs to the letters behind it.
  const char* second = at + first.length;
  const bool is_last = second == end_;
  const CharClass behind = is_last ? CharClass::Space : character_at(second).char_class;
  if (behind == CharClass::Letter && !is_line_end(*at)) return behind_letters(second);
  if (first.char_class == CharClass::Other) return behind_others(at);
  if (*at == ' ' && behind == CharClass::Other) return behind_others(second);
  return behind_white_space(at);
}

Llama3PreTokenizer::Character Llama3PreTokenizer::character_at(const char* at) const {
  if (is_ascii(*at)) return {kAsciiClass[static_cast<unsigned char>(*at)], 1};
  const Utf8Character next = utf8_character(at);
  return {classes_.of(next.code), next.length};
}

const char* Llama3PreTokenizer::behind_letters(const char* at) const {
  while (end_ - at >= 8) {
    const size_t letters = letters_of_eight(at);
    at += letters;
    if (letters == 8) continue;
    if (is_ascii(*at)) return at;
    const Character next = character_at(at);
    if (next.char_class != CharClass::Letter) return at;
    at += next.length;
  }
  while (at < end_) {
    const Character next = character_at(at);
    if (next.char_class != CharClass::Letter) break;
    at += next.length;
  }
  return at;
}

const char* Llama3PreTokenizer::behind_numbers(const char* at) const {
  for (int i = 0; i < numbers_ && at < end_; ++i) {
    const Character next = character_at(at);
    if (next.char_class != CharClass::Number) break;
    at += next.length;
  }
  return at;
}

const char* Llama3PreTokenizer::behind_others(const char* at) const {
  while (at < end_) {
    const Character next = character_at(at);
    if (next.char_class != CharClass::Other) break;
    at += next.length;
  }
  while (at < end_ && is_line_end(*at)) ++at;
  return at;
}

// Up to the last line end; without one, white space at the end of the text stays together, and
// before something else the last of it is left to the next piece.
const char* Llama3PreTokenizer::behind_white_space(const char* at) const {
  const char *begin = at, *last = at, *line_end = nullptr;
  while (at < end_) {
    const Character next = character_at(at);
    if (next.char_class != CharClass::Space) break;
    last = at;
    at += next.length;
    if (is_line_end(*last)) line_end = at;
  }
  if (line_end != nullptr) return line_end;
  return at == end_ || last == begin ? at : last;
}

}  // namespace bev
