#include "text/bpe/gpt2_pre_tokenizer.h"

#include "text/unicode/ascii_letters.h"
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

bool Gpt2Pieces::next(std::string_view& piece) {
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

CharClass Gpt2Pieces::class_at(const char* at) const {
  if (is_ascii(*at)) return kAsciiClass[static_cast<unsigned char>(*at)];
  return classes_.of(utf8_character(at).code);
}

const char* Gpt2Pieces::behind_letters(const char* at) const {
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

const char* Gpt2Pieces::behind_all(CharClass char_class, const char* at) const {
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
const char* Gpt2Pieces::behind_white_space(const char* at) const {
  const char* begin = at;
  const char* last = at;
  while (at < end_ && class_at(at) == CharClass::Space) {
    last = at;
    at += utf8_character(at).length;
  }
  return at == end_ || last == begin ? at : last;
}

}  // namespace bev
