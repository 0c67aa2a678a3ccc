// What a perplexity is measured on: tokens, cut into documents, and the text behind them.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/preprocess/documents.h"
#include "infer/model_folder.h"
#include "infer/scoring_windows.h"
#include "text/tokenizer.h"

namespace bev {

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

}  // namespace bev
