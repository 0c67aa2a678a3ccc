#include "text/bpe/gpt2_tokenizer.h"

#include <utility>

#include "text/bpe/bpe_merge.h"
#include "text/bpe/bpe_pre_tokenizer.h"
#include "text/bpe/bpe_vocab.h"
#include "text/utf8.h"

namespace bev {

Gpt2Tokenizer::Gpt2Tokenizer(std::shared_ptr<const BpeVocab> vocab, SpecialText special,
                             size_t cached_pieces)
    : vocab_(std::move(vocab)), special_(special), encoder_(cached_pieces) {}

void Gpt2Tokenizer::encode(std::string_view text, std::vector<int32_t>& ids) {
  if (valid_utf8_prefix(text) == text.size()) {
    encode_valid(text, ids);
  } else {
    encode_valid(replace_invalid_utf8(text), ids);
  }
}

void Gpt2Tokenizer::encode_valid(std::string_view text, std::vector<int32_t>& ids) {
  const std::optional<int32_t> end = vocab_->end_of_text();
  if (special_ == SpecialText::Special && end) {
    for (size_t at = text.find(kEndOfText); at != std::string_view::npos;
         at = text.find(kEndOfText)) {
      encode_pieces(text.substr(0, at), ids);
      ids.push_back(*end);
      text.remove_prefix(at + kEndOfText.size());
    }
  }
  encode_pieces(text, ids);
}

void Gpt2Tokenizer::encode_pieces(std::string_view text, std::vector<int32_t>& ids) {
  encoder_.encode(
      Gpt2PreTokenizer(text), text.data() + text.size(),
      [&](std::string_view piece) { return merge_piece(piece); }, ids);
}

std::span<const int32_t> Gpt2Tokenizer::merge_piece(std::string_view piece) {
  scratch_.resize(piece.size());
  for (size_t i = 0; i < piece.size(); ++i)
    scratch_[i] = vocab_->id_of_byte(static_cast<unsigned char>(piece[i]));
  return {scratch_.data(), merge_tokens(vocab_->merges(), scratch_)};
}

std::unique_ptr<Tokenizer> Gpt2Tokenizer::clone() const {
  return std::make_unique<Gpt2Tokenizer>(vocab_, special_, encoder_.cached_pieces());
}

std::string Gpt2Tokenizer::decode(std::span<const int32_t> ids, SpecialIds special) const {
  std::string text;
  for (const int32_t id : ids) {
    if (id < 0 || id >= vocab_->size()) continue;
    if (special == SpecialIds::LeaveOut && id == vocab_->end_of_text()) continue;
    text += vocab_->bytes(id);
  }
  return text;
}

std::string Gpt2Tokenizer::token_name(int32_t id) const {
  if (id == vocab_->end_of_text()) return std::string(kEndOfText);
  return name_of_bytes(vocab_->bytes(id));
}

std::optional<int32_t> Gpt2Tokenizer::role_id(TokenRole role) const {
  return role == TokenRole::End ? vocab_->end_of_text() : std::nullopt;
}

}  // namespace bev
