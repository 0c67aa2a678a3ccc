// How a token file stores an id, and the names and fixed parts of its two files.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>

namespace bev {

// The type of one id; the numbers are those of the format.
enum class TokenType : uint8_t { u8 = 1, i8, i16, i32, i64, f64, f32, u16 };
size_t size_of(TokenType type);
std::string_view name_of(TokenType type);

// Megatron's choice: 16 bits below 65,500 ids.
TokenType token_type_for(int64_t vocab);

// Calls f with a value of the C++ type of an id.
template <class F>
auto with_type(TokenType type, F f) {
  switch (type) {
    case TokenType::u8: return f(uint8_t{});
    case TokenType::i8: return f(int8_t{});
    case TokenType::i16: return f(int16_t{});
    case TokenType::i32: return f(int32_t{});
    case TokenType::i64: return f(int64_t{});
    case TokenType::f64: return f(double{});
    case TokenType::f32: return f(float{});
    case TokenType::u16: break;
  }
  return f(uint16_t{});
}

// The two files of a prefix.
std::filesystem::path bin_path(const std::filesystem::path& prefix);
std::filesystem::path idx_path(const std::filesystem::path& prefix);

// An .idx file begins with these, the type (one byte) and two numbers of eight.
constexpr std::array<unsigned char, 9> kTokenMagic{'M', 'M', 'I', 'D', 'I', 'D', 'X', 0, 0};
constexpr uint64_t kTokenVersion = 1;
constexpr size_t kTokenHeaderBytes = 34;

}  // namespace bev
