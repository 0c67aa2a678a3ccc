#include "text/byte_tokenizer.h"

namespace bev {

void encode_bytes(std::string_view text, std::vector<int32_t>& ids) {
  ids.reserve(ids.size() + text.size());
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
}

std::string decode_bytes(std::span<const int32_t> ids) {
  std::string text;
  for (const int32_t id : ids)
    if (id >= 0 && id < kByteEod) text += static_cast<char>(id);
  return text;
}

size_t complete_utf8(std::string_view bytes) {
  const auto byte_at = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  for (size_t back = 1; back <= 3 && back <= bytes.size(); ++back) {
    const unsigned char c = byte_at(bytes.size() - back);
    if ((c & 0xC0) == 0x80) continue;               // inside a character: look for its first byte
    if (c < 0xC2 || c > 0xF4) return bytes.size();  // a whole character, or none at all
    const size_t length = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
    return length > back ? bytes.size() - back : bytes.size();
  }
  return bytes.size();
}

}  // namespace bev
