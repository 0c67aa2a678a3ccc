// Learns Punkt parameters from text as PunktTrainer of NLTK 3.10 does with its defaults: T. Kiss
// and J. Strunk, Unsupervised Multilingual Sentence Boundary Detection, 2006.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/punkt/punkt_parameters.h"

namespace bev {

// Memory: 8 bytes for each word of the text being added, and the distinct words of all input.
class PunktTrainer {
 public:
  // Counts the words of a text and finds abbreviations, like train(text, finalize=False). A further
  // text may add abbreviations and remove earlier ones. REQUIRES: valid UTF-8.
  void add(std::string_view text);

  // Finds collocations and sentence starters, like finalize_training().
  PunktParameters finish() const;

  int64_t words() const { return total_; }

 private:
  // A word of the text as the later passes need it.
  struct Token {
    uint32_t type;   // index in types_
    uint32_t flags;  // TokenFlag bits
  };
  // A different word: lower case, or a number.
  struct Type {
    const std::string* name;  // the key in type_numbers_
    int64_t count;            // in all input
    uint64_t text;            // the last text that has it
  };

  using Counts = std::unordered_map<std::string, int64_t, PunktParameters::Hash, std::equal_to<>>;

  void read_tokens(std::string_view text);
  void classify_abbreviations();
  void mark_tokens();
  void read_orthography();
  void read_pairs();
  double abbreviation_score(std::string_view stem) const;
  bool is_rare_abbreviation(const Token& token, const Token& next) const;
  int64_t count_of(std::string_view type) const;
  // How often the word occurs, with a period after it or without.
  int64_t count_with_period(std::string_view type) const;
  // The type of a token, without the period if that ends a sentence.
  std::string_view sentence_type(const Token& token) const;

  std::unordered_map<std::string, uint32_t, PunktParameters::Hash, std::equal_to<>> type_numbers_;
  std::vector<Type> types_;
  std::vector<Token> tokens_;  // of the text being added
  PunktParameters parameters_;
  Counts starters_, pairs_;
  uint64_t texts_ = 0;
  int64_t total_ = 0, with_period_ = 0, breaks_ = 0;  // words
};

}  // namespace bev
