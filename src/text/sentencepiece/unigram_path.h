// The most probable division of a text into the pieces of a unigram model: the sum of the scores is
// largest, and all sums are float32. Of equal sums the one whose last piece begins first wins.
//
// This is what SentencePiece does from 0.2 on. Version 0.1.97 compares a float64 sum with a rounded
// one, so that near-equal divisions ("II"+"I" and "I"+"II") come out the other way round at times.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/huggingface/byte_trie.h"
#include "text/sentencepiece/sentencepiece_file.h"

namespace bev {

class UnigramPath {
 public:
  explicit UnigramPath(const SentencePieceFacts& facts);

  struct Part {
    int32_t id;  // kNoPiece: a character that no piece covers
    std::string_view text;
  };
  static constexpr int32_t kNoPiece = -1;

  // REQUIRES: the text is normalised and valid UTF-8. The parts point into it.
  std::vector<Part> best(std::string_view text) const;

 private:
  ByteTrie pieces_;
  std::vector<float> scores_;  // by id
  float unknown_score_ = 0;
};

}  // namespace bev
