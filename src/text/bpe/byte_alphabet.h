// The printable character that stands for each byte in the files of byte-level vocabularies: bytes
// that are printable in Latin-1 stand for themselves, the others are U+0100 and up in their order.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace bev {

char32_t character_of_byte(unsigned char byte);

// The bytes that a token's name in a vocabulary file stands for; nothing when it has a character
// that stands for no byte or is not valid UTF-8.
std::optional<std::string> bytes_of_name(std::string_view name);

// The opposite: the name in a vocabulary file.
std::string name_of_bytes(std::string_view bytes);

}  // namespace bev
