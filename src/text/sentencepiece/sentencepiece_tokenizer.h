// Tokenizers whose vocabulary is a SentencePiece .model file. The kinds differ in which special
// tokens stand behind the pieces of the model and around a text; under the rules of today they do
// not differ at all.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/huggingface/byte_trie.h"
#include "text/sentencepiece/sentencepiece_file.h"
#include "text/tokenizer.h"

namespace bev {

// What stands behind the pieces of the model and in front of a text.
enum class SentencePieceRules : uint8_t {
  Plain,       // nothing; the end of a sequence ends a document
  BeginFirst,  // each text begins with the token for that
  Marked,      // <CLS> <SEP> <EOD> <MASK>, then <PAD> <BOS> <EOS> where the model has none of
               // its own; their names in a text are these tokens; <EOD> ends a document
};

class SentencePieceTokenizer final : public Tokenizer {
 public:
  // The file's content and what messages call it. Content that is no model is a Data error.
  // `extra_ids` tokens <extra_id_0> ... stand behind all others; their names in a text are they.
  SentencePieceTokenizer(std::string_view model, const std::string& name, SentencePieceRules rules,
                         int64_t extra_ids);
  static std::unique_ptr<Tokenizer> read(const std::string& path, SentencePieceRules rules,
                                         int64_t extra_ids);
  ~SentencePieceTokenizer() override;

  std::unique_ptr<Tokenizer> clone() const override;
  void encode(std::string_view text, std::vector<int32_t>& ids) override;
  // Control pieces have no text; each byte piece that is no part of a character is one U+FFFD; a
  // space surrounds each special token that is no piece.
  std::string decode(std::span<const int32_t> ids,
                     SpecialIds special = SpecialIds::Keep) const override;
  std::string token_name(int32_t id) const override;
  int64_t vocab_size() const override;
  std::optional<int32_t> eod_id() const override;
  std::optional<int32_t> role_id(TokenRole role) const override;

  // The pieces that encode finds ids for; one without an id is the text itself.
  std::vector<std::string> pieces(std::string_view text) const;

 private:
  struct Shared;  // everything: nothing changes after loading
  explicit SentencePieceTokenizer(std::shared_ptr<const Shared> shared);

  void encode_plain(std::string_view text, std::vector<int32_t>& ids) const;

  std::shared_ptr<const Shared> shared_;
};

// The most probable division of a text into the pieces of a unigram model: the sum of the scores is
// largest, and all sums are float32. Of equal sums the one whose last piece begins first wins.
//
// This is what SentencePiece does from 0.2 on. Version 0.1.97 compares a float64 sum with a rounded
// one, so that near-equal divisions ("II"+"I" and "I"+"II") come out the other way round at times.

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
