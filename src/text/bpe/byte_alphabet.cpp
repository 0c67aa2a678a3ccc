#include "text/bpe/byte_alphabet.h"

#include <array>
#include <cstdint>

#include "text/utf8.h"

namespace bev {

namespace {

constexpr bool stands_for_itself(size_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xFF && byte != 0xAD);
}

constexpr std::array<uint16_t, 256> kCharacters = [] {
  std::array<uint16_t, 256> characters{};
  uint16_t next = 0x100;
  for (size_t byte = 0; byte < 256; ++byte)
    characters[byte] = stands_for_itself(byte) ? static_cast<uint16_t>(byte) : next++;
  return characters;
}();

constexpr size_t kCharacterLimit = 0x100 + 68;  // one behind the last: 188 stand for themselves
constexpr int16_t kNoByte = -1;

constexpr std::array<int16_t, kCharacterLimit> kBytes = [] {
  std::array<int16_t, kCharacterLimit> bytes{};
  for (int16_t& byte : bytes) byte = kNoByte;
  for (size_t byte = 0; byte < 256; ++byte) bytes[kCharacters[byte]] = static_cast<int16_t>(byte);
  return bytes;
}();

}  // namespace

char32_t character_of_byte(unsigned char byte) { return kCharacters[byte]; }

std::optional<std::string> bytes_of_name(std::string_view name) {
  if (valid_utf8_prefix(name) != name.size()) return std::nullopt;
  std::string bytes;
  for (size_t at = 0; at < name.size();) {
    const Utf8Character next = utf8_character(name.data() + at);
    if (next.code >= kCharacterLimit || kBytes[next.code] == kNoByte) return std::nullopt;
    bytes += static_cast<char>(kBytes[next.code]);
    at += next.length;
  }
  return bytes;
}

std::string name_of_bytes(std::string_view bytes) {
  std::string name;
  for (const char byte : bytes)
    append_utf8(character_of_byte(static_cast<unsigned char>(byte)), name);
  return name;
}

}  // namespace bev
