#include "text/byte_tokenizer.h"

#include "base/format.h"

namespace bev {

void ByteTokenizer::encode(std::string_view text, std::vector<int32_t>& ids) {
  ids.reserve(ids.size() + text.size());
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
}

std::string ByteTokenizer::decode(std::span<const int32_t> ids, SpecialIds) const {
  std::string text;
  for (const int32_t id : ids)
    if (id >= 0 && id < kByteEod) text += static_cast<char>(id);
  return text;
}

std::string ByteTokenizer::token_name(int32_t id) const {
  if (id == kByteEod) return "<end of document>";
  return id >= 0x20 && id < 0x7F ? std::string(1, static_cast<char>(id)) : format("<0x{:02X}>", id);
}

}  // namespace bev
