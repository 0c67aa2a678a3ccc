#include "data/token_type.h"

namespace bev {

size_t size_of(TokenType type) {
  return with_type(type, [](auto id) { return sizeof(id); });
}

std::string_view name_of(TokenType type) {
  constexpr std::array<std::string_view, 9> kNames{"",      "uint8",   "int8",    "int16", "int32",
                                                   "int64", "float64", "float32", "uint16"};
  return kNames[static_cast<size_t>(type)];
}

TokenType token_type_for(int64_t vocab) { return vocab < 65500 ? TokenType::u16 : TokenType::i32; }

std::filesystem::path bin_path(const std::filesystem::path& prefix) {
  return prefix.string() + ".bin";
}

std::filesystem::path idx_path(const std::filesystem::path& prefix) {
  return prefix.string() + ".idx";
}

}  // namespace bev
