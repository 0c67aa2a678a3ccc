// Bytes as tokens, with a token in front of every whole text and one behind it, as vocabularies
// with a template have them.
#pragma once

#include "text/tokenizer.h"

namespace bev::test {

constexpr int32_t kByteBegin = 257, kByteEnd = 258;

class MarkedBytes final : public Tokenizer {
 public:
  std::unique_ptr<Tokenizer> clone() const override { return std::make_unique<MarkedBytes>(); }
  void encode(std::string_view text, std::vector<int32_t>& ids) override {
    encode_begun(text, ids);
    ids.push_back(kByteEnd);
  }
  void encode_begun(std::string_view text, std::vector<int32_t>& ids) override {
    ids.push_back(kByteBegin);
    bytes_.encode(text, ids);
  }
  std::string decode(std::span<const int32_t> ids, SpecialIds special) const override {
    return bytes_.decode(ids, special);
  }
  std::string token_name(int32_t id) const override {
    return id == kByteBegin ? "<s>" : id == kByteEnd ? "</s>" : bytes_.token_name(id);
  }
  int64_t vocab_size() const override { return kByteVocab + 2; }
  std::optional<int32_t> eod_id() const override { return kByteEod; }
  std::optional<int32_t> role_id(TokenRole role) const override {
    return role == TokenRole::Begin ? std::optional(kByteBegin) : std::nullopt;
  }

 private:
  ByteTokenizer bytes_;
};

}  // namespace bev::test
