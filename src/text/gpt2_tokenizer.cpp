#include "text/gpt2_tokenizer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "text/bpe_merge.h"
#include "text/byte_alphabet.h"
#include "text/gpt2_pieces.h"
#include "text/utf8.h"

namespace bev {

namespace {

// Ids on their way into the vector, some thousand at a time: most pieces have one or two, and a
// fixed number is copied faster than the right one.
class IdBuffer {
 public:
  explicit IdBuffer(std::vector<int32_t>& ids) : ids_(ids) {}

  void add(const PieceCache::Entry& entry) {
    if (used_ + PieceCache::kIds > buffer_.size()) flush();
    for (size_t i = 0; i < PieceCache::kIds; ++i) buffer_[used_ + i] = entry.ids[i];
    used_ += entry.count;
  }

  void add(std::span<const int32_t> ids) {
    if (used_ + ids.size() > buffer_.size()) flush();
    if (ids.size() > buffer_.size()) {
      ids_.insert(ids_.end(), ids.begin(), ids.end());
    } else {
      std::copy(ids.begin(), ids.end(), buffer_.data() + used_);
      used_ += ids.size();
    }
  }

  void flush() {
    ids_.insert(ids_.end(), buffer_.data(), buffer_.data() + used_);
    used_ = 0;
  }

 private:
  std::vector<int32_t>& ids_;
  std::array<int32_t, 4096> buffer_;
  size_t used_ = 0;
};

}  // namespace

Gpt2Tokenizer::Gpt2Tokenizer(std::shared_ptr<const BpeVocab> vocab, SpecialText special,
                             size_t cached_pieces)
    : vocab_(std::move(vocab)), special_(special), cache_(cached_pieces) {}

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
  const char* end = text.data() + text.size();
  Gpt2Pieces pieces(text);
  IdBuffer buffer(ids);
  std::string_view piece;
  while (pieces.next(piece)) {
    if (piece.size() > PieceCache::kBytes) {
      buffer.add(merge_piece(piece));
      continue;
    }
    const PieceCache::Key key = PieceCache::key_of(piece, static_cast<size_t>(end - piece.data()));
    if (const PieceCache::Entry* known = cache_.find(key)) {
      buffer.add(*known);
      continue;
    }
    const std::span<const int32_t> merged = merge_piece(piece);
    if (merged.size() <= PieceCache::kIds) cache_.put(key, merged);
    buffer.add(merged);
  }
  buffer.flush();
}

std::span<const int32_t> Gpt2Tokenizer::merge_piece(std::string_view piece) {
  scratch_.resize(piece.size());
  for (size_t i = 0; i < piece.size(); ++i)
    scratch_[i] = vocab_->id_of_byte(static_cast<unsigned char>(piece[i]));
  return {scratch_.data(), merge_tokens(vocab_->merges(), scratch_)};
}

std::unique_ptr<Tokenizer> Gpt2Tokenizer::clone() const {
  return std::make_unique<Gpt2Tokenizer>(vocab_, special_, cache_.entries());
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
