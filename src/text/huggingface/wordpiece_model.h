// BERT's WordPiece: a word is the longest token it begins with, then the longest one marked as a
// continuation, and so on. A word that cannot be written so, or has too many characters, is
// unknown.
#pragma once

#include "text/huggingface/byte_trie.h"
#include "text/huggingface/token_model.h"

namespace bev {

class WordPieceModel final : public TokenModel {
 public:
  struct Options {
    int32_t unknown = 0;
    std::string continuation = "##";  // begins the names of continuing tokens
    size_t longest_word = 100;        // characters
  };

  WordPieceModel(TokenNames names, Options options);

  void encode(std::string_view piece, std::vector<int32_t>& ids) const override;

 private:
  ByteTrie begins_, continues_;
  Options options_;
};

}  // namespace bev
