// Bytes as tokens: id = byte, and kByteEod ends a document. Any text has exactly one encoding.
#pragma once

#include "text/tokenizer.h"

namespace bev {

constexpr int64_t kByteVocab = 257;  // the bytes and the end of a document
constexpr int32_t kByteEod = 256;

class ByteTokenizer final : public Tokenizer {
 public:
  std::unique_ptr<Tokenizer> clone() const override { return std::make_unique<ByteTokenizer>(); }
  void encode(std::string_view text, std::vector<int32_t>& ids) override;
  // The end of a document has no text.
  std::string decode(std::span<const int32_t> ids,
                     SpecialIds special = SpecialIds::Keep) const override;
  std::string token_name(int32_t id) const override;
  int64_t vocab_size() const override { return kByteVocab; }
  std::optional<int32_t> eod_id() const override { return kByteEod; }
};

}  // namespace bev
