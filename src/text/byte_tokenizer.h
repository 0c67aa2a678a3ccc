// Bytes as tokens: id = byte, and kByteEod ends a document. Any text has exactly one encoding.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/tokenizer_facts.h"
#include "text/tokenizer.h"

namespace bev {

// Appends the ids of the text.
void encode_bytes(std::string_view text, std::vector<int32_t>& ids);

// The bytes of the ids; those that are no bytes are left out.
std::string decode_bytes(std::span<const int32_t> ids);

class ByteTokenizer final : public Tokenizer {
 public:
  void encode(std::string_view text, std::vector<int32_t>& ids) override {
    encode_bytes(text, ids);
  }
  std::string decode(std::span<const int32_t> ids) const override { return decode_bytes(ids); }
  int64_t vocab_size() const override { return kByteVocab; }
  std::optional<int32_t> eod_id() const override { return kByteEod; }
};

// The longest prefix of `bytes` that does not end within a UTF-8 character: what a terminal can be
// given now. Bytes that are no UTF-8 at all are not held back.
size_t complete_utf8(std::string_view bytes);

}  // namespace bev
