// SHA-256.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "base/format.h"

namespace bev {

using Sha256Digest = std::array<std::byte, 32>;

// Of bytes that come piece by piece. A copy goes on from where the original stands.
class Sha256 {
 public:
  static constexpr size_t kBlock = 64;

  void add(std::span<const std::byte> bytes);
  // Of all that was added; more may follow.
  Sha256Digest digest() const;

 private:
  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, kBlock> rest_{};  // bytes behind the last whole block
  uint64_t bytes_ = 0;
};

// In lower-case hexadecimal digits.
std::string sha256(std::span<const std::byte> bytes);

// HMAC-SHA-256 (RFC 2104).

// A key with the work done that is the same for every message.
class HmacKey {
 public:
  explicit HmacKey(std::span<const std::byte> key);
  explicit HmacKey(std::string_view key) : HmacKey(std::as_bytes(std::span(key))) {}

  // Of the parts, one behind the other.
  Sha256Digest sign(std::initializer_list<std::span<const std::byte>> parts) const;

 private:
  Sha256 inner_, outer_;
};

// Takes the same time wherever they differ.
bool same_tag(std::span<const std::byte, 32> a, std::span<const std::byte, 32> b);

// Random numbers that nobody can guess.

void fill_random(std::span<std::byte> bytes);

// Names and numbers that nobody can guess.

inline uint64_t random_number() {
  std::array<std::byte, 8> bytes{};
  fill_random(bytes);
  uint64_t number = 0;
  std::memcpy(&number, bytes.data(), bytes.size());
  return number;
}

// Sixteen hexadecimal digits.
inline std::string random_name() { return format("{:016x}", random_number()); }

}  // namespace bev
