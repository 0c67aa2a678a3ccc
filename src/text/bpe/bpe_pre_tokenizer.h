// GPT-2's division of a text into pieces, within which bytes are merged to tokens. In the words of
// its regular expression:
//
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// The pieces follow each other without gaps. Time is linear in the text.
#pragma once

#include <string_view>

#include "text/unicode/unicode.h"

namespace bev {

class Gpt2PreTokenizer {
 public:
  // REQUIRES: text is valid UTF-8 and outlives this.
  explicit Gpt2PreTokenizer(std::string_view text)
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

// The division of a text into pieces that Llama 3, Qwen 2 and GPT-4 use. In the words of their
// regular expression, where N is the most numbers in a row that stay together:
//
//   (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,N}| ?[^\s\p{L}\p{N}]+[\r\n]*
//   |\s*[\r\n]+|\s+(?!\S)|\s+
//
// The pieces follow each other without gaps. Time is linear in the text.

class Llama3PreTokenizer {
 public:
  // REQUIRES: text is valid UTF-8 and outlives this; numbers > 0.
  Llama3PreTokenizer(std::string_view text, int numbers)
      : at_(text.data()),
        end_(text.data() + text.size()),
        numbers_(numbers),
        classes_(UnicodeClasses::table()) {}

  // The next piece, never empty; false at the end of the text.
  bool next(std::string_view& piece);

 private:
  struct Character {
    CharClass char_class;
    size_t length;  // bytes
  };

  Character character_at(const char* at) const;
  const char* behind_letters(const char* at) const;
  const char* behind_numbers(const char* at) const;
  const char* behind_others(const char* at) const;
  const char* behind_white_space(const char* at) const;
  const char* behind_piece(const char* at) const;

  const char *at_, *end_;
  int numbers_;
  const UnicodeClasses& classes_;
};

}  // namespace bev
