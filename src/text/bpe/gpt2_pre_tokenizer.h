// GPT-2's division of a text into pieces, within which bytes are merged to tokens. In the words of
// its regular expression:
//
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// The pieces follow each other without gaps. Time is linear in the text.
#pragma once

#include <string_view>

#include "text/unicode/char_classes.h"

namespace bev {

class Gpt2Pieces {
 public:
  // REQUIRES: text is valid UTF-8 and outlives this.
  explicit Gpt2Pieces(std::string_view text)
      : at_(text.data()), end_(text.data() + text.size()), classes_(UnicodeClasses::table()) {}

  // The next piece, never empty; false at the end of the text.
  bool next(std::string_view& piece);

 private:
  CharClass class_at(const char* at) const;
  const char* behind_letters(const char* at) const;
  const char* behind_all(CharClass char_class, const char* at) const;
  const char* behind_white_space(const char* at) const;

  const char *at_, *end_;
  const UnicodeClasses& classes_;
};

}  // namespace bev
