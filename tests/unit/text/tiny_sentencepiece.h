// SentencePiece models written byte by byte: what a file says, valid or not.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace bev::test {

inline std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

inline std::string number_field(uint32_t field, uint64_t value) {
  return varint(uint64_t{field} << 3) + varint(value);
}

inline std::string bytes_field(uint32_t field, std::string_view bytes) {
  return varint(uint64_t{field} << 3 | 2) + varint(bytes.size()) + std::string(bytes);
}

template <class T>
std::string raw(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

// Types: 1 normal, 2 unknown, 3 control, 4 asked for by the user, 5 unused, 6 byte.
inline std::string piece_field(std::string_view text, float score, uint64_t type) {
  return bytes_field(
      1, bytes_field(1, text) + varint(2 << 3 | 5) + raw(score) + number_field(3, type));
}

// <unk> <s> </s> and single letters, a piece each; a unigram model (1) or one of the others.
inline std::string tiny_model(std::string_view more_pieces = "", uint64_t model_type = 1,
                              std::string_view charsmap = "") {
  std::string model = piece_field("<unk>", 0, 2) + piece_field("<s>", 0, 3) +
                      piece_field("</s>", 0, 3) + piece_field("\xE2\x96\x81", -2, 1);
  for (const char letter : {'a', 'b', 'I'}) model += piece_field({&letter, 1}, -3, 1);
  model += more_pieces;
  model += bytes_field(2, number_field(3, model_type));
  model += bytes_field(3, bytes_field(1, "identity") + bytes_field(2, charsmap) +
                              number_field(3, 1) + number_field(4, 0) + number_field(5, 1));
  return model;
}

}  // namespace bev::test
