// The tokenizer that a user names.
#pragma once

#include <memory>

#include "text/tokenizer.h"
#include "text/tokenizer_kind.h"

namespace bev {

struct TokenizerSpec {
  TokenizerKind kind = TokenizerKind::None;
  std::string vocab_file;  // Gpt2: vocab.json; Bert: vocab.txt
  std::string merge_file;  // Gpt2: merges.txt
  std::string model;      // HuggingFace: tokenizer.json or its folder; SentencePiece: a .model file
  int64_t vocab = 0;      // Null: how many ids there are
  int64_t eod = -1;       // Null: the id that ends a document; -1: the last
  int64_t extra_ids = 0;  // Bert, SentencePiece: <extra_id_0> and so on behind the vocabulary
  bool classic = false;   // the rules of October 2023 where Megatron-LM's versions differ
  bool add_template = true;  // tokens that the vocabulary's template puts around a text

  // The file of the vocabulary, by the kind.
  const std::string& file() const;
};

// Reads and checks the files. A file that is missing in the spec is a Usage error, one that cannot
// be read or contradicts itself a Data error. REQUIRES: a kind that can encode (not None,
// External).
std::unique_ptr<Tokenizer> open_tokenizer(const TokenizerSpec& spec);

// What a file is, or what a folder holds, by the content: tokenizer.json, a SentencePiece model,
// vocab.txt of BERT (cased where a token has a capital letter), vocab.json with merges.txt. Of
// several in a folder the first of these. Data error that names what was looked for otherwise.
TokenizerSpec detect_tokenizer(const std::string& path);

}  // namespace bev
