// One step that changes a text before it is cut into pieces. It never changes and may be shared.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace bev {

class Normalizer {
 public:
  virtual ~Normalizer() = default;

  // REQUIRES of the text, and holds again afterwards: valid UTF-8.
  virtual void apply(std::string& text) const = 0;

  // Whether what the text begins with may be gone afterwards.
  virtual bool may_drop_the_start() const { return false; }
};

struct BertNormalizing {
  bool clean = true;          // control characters go, white space becomes blanks
  bool space_chinese = true;  // ideographs become words of their own
  bool strip_accents = true;
  bool lower_case = true;
};
std::unique_ptr<Normalizer> bert_normalizer(BertNormalizing what);

enum class UnicodeForm : uint8_t { Composed, Decomposed, LowerCase, WithoutMarks };
std::unique_ptr<Normalizer> form_normalizer(UnicodeForm form);

// White space at the ends goes.
std::unique_ptr<Normalizer> strip_normalizer(bool left, bool right);

// The text put before one that is not empty.
std::unique_ptr<Normalizer> prepend_normalizer(std::string text);

// REQUIRES: from is not empty.
std::unique_ptr<Normalizer> replace_normalizer(std::string from, std::string to);

// Two blanks or more in a row become the text.
std::unique_ptr<Normalizer> replace_blanks_normalizer(std::string to);

// SentencePiece's table of replacements, which tokenizer.json holds as base64: a double-array trie
// of byte strings, and the texts that replace them.

// The table of the bytes. Data error that begins with `where` when they are none.
std::unique_ptr<Normalizer> charsmap_normalizer(std::string_view bytes, std::string_view where);

// The bytes that base64 text stands for; Data error that begins with `where` when it is none.
std::string bytes_of_base64(std::string_view text, std::string_view where);

}  // namespace bev
