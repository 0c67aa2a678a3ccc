// The perplexity of a corpus whose words and marks stand apart, as Megatron-LM measures and papers
// report it: of plain text, but for each word of the original.
#pragma once

#include "eval/perplexity.h"
#include "text/detokenizer.h"

namespace bev {

struct WikitextCorpus {
  EvalText text{};  // one document without an end
  Detokenizer rules{};
  int64_t original_words = 0;  // what single spaces separate in the file
};

// Data error when it is not UTF-8, or has fewer than two words.
WikitextCorpus wikitext_corpus(std::string name, std::string_view text, Detokenizer rules,
                               Tokenizer& tokenizer);

// What is printed for a mean loss.
struct WikitextScore {
  double loss = 0;         // nats for each scored token
  double token_ratio = 0;  // scored tokens for each word but the first

  // At most exp(20).
  double perplexity() const;
  double word_perplexity() const;
};
WikitextScore wikitext_score(const WikitextCorpus& corpus, double nats);

// " validation results on WIKITEXT103 | avg loss: ..."
std::string megatron_line(const WikitextScore& score);

}  // namespace bev
