#include "net/hmac.h"

#include <algorithm>
#include <array>

namespace bev {

HmacKey::HmacKey(std::span<const std::byte> key) {
  std::array<std::byte, Sha256::kBlock> block{};
  if (key.size() > block.size()) {
    Sha256 sum;
    sum.add(key);
    const Sha256Digest digest = sum.digest();
    std::copy(digest.begin(), digest.end(), block.begin());
  } else {
    std::copy(key.begin(), key.end(), block.begin());
  }
  std::array<std::byte, Sha256::kBlock> inner{}, outer{};
  for (size_t i = 0; i < block.size(); ++i) {
    inner[i] = block[i] ^ std::byte{0x36};
    outer[i] = block[i] ^ std::byte{0x5c};
  }
  inner_.add(inner);
  outer_.add(outer);
}

Sha256Digest HmacKey::sign(std::initializer_list<std::span<const std::byte>> parts) const {
  Sha256 inner = inner_, outer = outer_;
  for (const std::span<const std::byte> part : parts) inner.add(part);
  outer.add(inner.digest());
  return outer.digest();
}

bool same_tag(std::span<const std::byte, 32> a, std::span<const std::byte, 32> b) {
  std::byte difference{0};
  for (size_t i = 0; i < a.size(); ++i) difference |= a[i] ^ b[i];
  return difference == std::byte{0};
}

}  // namespace bev
