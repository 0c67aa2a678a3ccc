// How well a model foresees a text.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/preprocess/text_reader.h"
#include "infer/model_folder.h"
#include "infer/scorer.h"
#include "text/tokenizer.h"

namespace bev {

// What a perplexity is measured on: tokens, cut into documents, and the text behind them.

struct EvalDocument {
  int64_t begin = 0, tokens = 0;  // in the stream
  int64_t bytes = 0, words = 0;   // of its text, without the end of the document
};

struct EvalText {
  std::string name{};
  TokenStream stream{};
  std::vector<EvalDocument> documents{};  // all of the stream, in its order
  bool has_text = false;  // without a tokenizer nobody knows bytes and words of a token file
  std::shared_ptr<const std::vector<int32_t>> ids{};  // of a text; keeps what the stream reads
};

// A text in documents, each with the end of a document behind it where the tokenizer has one. Data
// error when there is nothing in it, or bytes that are no UTF-8 and no tokens either.
EvalText eval_text_of(std::string name, std::string_view text, DocumentBreak documents,
                      Tokenizer& tokenizer);

// A token file. `tokenizer` may be absent.
EvalText eval_token_file(const std::string& prefix, const Config& config,
                         const Tokenizer* tokenizer);

// The validation part of the data that a model was trained on; of a blend, all files one after the
// other, each once. Usage error when the folder does not say which data, Data error when there is
// no such part.
EvalText eval_validation(const ModelFolder& folder, const Tokenizer* tokenizer);

struct PerplexityRule {
  int64_t length = 0, overlap = 0;  // of windows (infer/scorer.h)
  int32_t before = -1;              // what the first token is scored from; negative: it is not
  bool separate = false;            // documents by themselves: none sees another
};
// Of the whole: how each token was scored, a sentence.
std::string rule_in_words(const PerplexityRule& rule);

struct DocumentScore {
  int64_t tokens = 0;  // scored
  double nats = 0;
};

struct TextScore {
  int64_t tokens = 0;  // scored
  double nats = 0;
  std::vector<DocumentScore> documents{};  // as those of the text
};

// The windows of a text in the order in which they are scored.
class PerplexityWindows {
 public:
  // The text must outlive this. Data error when no token can be scored.
  PerplexityWindows(const EvalText& text, const PerplexityRule& rule);

  ScoringItems items() const;
  int64_t count() const { return first_.back(); }
  int64_t first_place(int64_t index) const;

 private:
  struct Place {
    size_t part;
    int64_t window;
  };
  Place place(int64_t index) const;

  std::vector<ScoringWindows> parts_;
  std::vector<int64_t> begins_;  // of each part, in the stream
  std::vector<int64_t> first_;   // window of each part, and the number of all
};

// All ranks together.
TextScore score_text(
    Scorer& scorer, const EvalText& text, const PerplexityWindows& windows,
    FunctionRef<void(int64_t done)> on_done = [](int64_t) {});

}  // namespace bev
