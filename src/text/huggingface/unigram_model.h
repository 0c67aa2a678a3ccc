// A unigram model: of all ways to write a piece as tokens the one with the largest sum of scores.
#pragma once

#include <optional>

#include "text/huggingface/byte_trie.h"
#include "text/huggingface/token_model.h"

namespace bev {

class UnigramModel final : public TokenModel {
 public:
  struct Options {
    std::optional<int32_t> unknown = std::nullopt;  // for what the vocabulary does not have
    bool byte_fallback = false;                     // first <0x00> to <0xFF> are tried
  };

  // Scores by id, finite. A text with an unknown character is a Data error where there is no
  // unknown token. REQUIRES: as many scores as names, which have no gaps.
  UnigramModel(TokenNames names, std::vector<double> scores, Options options, std::string source);

  void encode(std::string_view piece, std::vector<int32_t>& ids) const override;

 private:
  void append_unknown(std::string_view part, std::vector<int32_t>& ids) const;

  ByteTrie tokens_;
  std::vector<double> scores_;
  double unknown_score_ = 0.0;
  Options options_;
  std::string source_;
};

}  // namespace bev
