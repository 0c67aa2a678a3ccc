// Text cut into sentences exactly as by PunktSentenceTokenizer of NLTK 3.10: each . ? and ! is a
// candidate, and the words around it decide. Closing quotes and brackets after the end of a
// sentence belong to it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/punkt/punkt_parameters.h"
#include "text/punkt/punkt_words.h"
#include "text/sentence_splitter.h"

namespace bev {

// For one thread. Linear in the length of the text.
class PunktSplitter {
 public:
  explicit PunktSplitter(std::shared_ptr<const PunktParameters> parameters)
      : parameters_(std::move(parameters)) {}

  // Appends the sentences of the text as views into it. SentenceBlanks::Keep cuts as Megatron-LM's
  // CustomLanguageVars do: a sentence keeps the white space after its mark. Any bytes are allowed.
  void split(std::string_view text, SentenceBlanks blanks,
             std::vector<std::string_view>& sentences);

 private:
  enum class Starts : uint8_t { No, Yes, Unknown };
  // The judgement of a word by itself.
  enum class Mark : uint8_t { None, Break, Abbreviation, Ellipsis };
  struct Span {
    size_t begin, end;
  };

  // Whether a word of the context other than the last one ends a sentence.
  bool contains_break(std::string_view context);
  bool is_break(const PunktWord& word, const PunktWord& next);
  // `stem` is the lower case of the word without its last period. REQUIRES: it ends with one.
  Mark mark_of(const PunktWord& word, std::string_view stem) const;
  // Sets type_, without the period. REQUIRES: the word ends with one.
  Mark read_period_word(const PunktWord& word);
  // Sets next_type_: without the period if that alone ends a sentence.
  void read_next_word(const PunktWord& word);
  // Whether the case of the word in next_type_ marks it as the first of a sentence.
  Starts starts_sentence(const PunktWord& word) const;
  // Moves closing quotes and brackets at the beginning of a span to the span before.
  void emit(std::string_view text, std::vector<std::string_view>& sentences) const;

  std::shared_ptr<const PunktParameters> parameters_;
  std::vector<Span> spans_;
  std::string stem_, type_, next_type_, pair_;
};

}  // namespace bev
