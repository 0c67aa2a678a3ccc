// SHA-256.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

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

}  // namespace bev
