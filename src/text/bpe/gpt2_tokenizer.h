// GPT-2's tokenizer: the text is cut into pieces (bpe_pre_tokenizer.h), and the bytes of each are
// merged (bpe_merge.h). Bytes that are no UTF-8 are replaced first (utf8.h), as programs do that
// take text.
#pragma once

#include <memory>

#include "text/bpe/bpe_vocab.h"
#include "text/bpe/piece_encoder.h"
#include "text/tokenizer.h"

namespace bev {

// What the characters <|endoftext|> in a text mean.
enum class SpecialText : uint8_t {
  Plain,    // themselves: the text may come from anyone
  Special,  // the end of a document; what stands before and behind is encoded by itself
};

class Gpt2Tokenizer final : public Tokenizer {
 public:
  // Several may share a vocabulary. REQUIRES: cached_pieces is a power of two and at least 2.
  explicit Gpt2Tokenizer(std::shared_ptr<const BpeVocab> vocab,
                         SpecialText special = SpecialText::Plain,
                         size_t cached_pieces = PieceEncoder::kCachedPieces);

  void encode(std::string_view text, std::vector<int32_t>& ids) override;
  std::unique_ptr<Tokenizer> clone() const override;
  std::string decode(std::span<const int32_t> ids,
                     SpecialIds special = SpecialIds::Keep) const override;
  std::string token_name(int32_t id) const override;
  int64_t vocab_size() const override { return vocab_->size(); }
  std::optional<int32_t> eod_id() const override { return vocab_->end_of_text(); }
  std::optional<int32_t> role_id(TokenRole role) const override;

 private:
  void encode_valid(std::string_view text, std::vector<int32_t>& ids);
  void encode_pieces(std::string_view text, std::vector<int32_t>& ids);
  std::span<const int32_t> merge_piece(std::string_view piece);

  std::shared_ptr<const BpeVocab> vocab_;  // shared with the clones
  SpecialText special_;
  PieceEncoder encoder_;
  std::vector<int32_t> scratch_;  // the tokens of one piece
};

}  // namespace bev
