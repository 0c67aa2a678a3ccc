// HMAC-SHA-256 (RFC 2104).
#pragma once

#include <span>
#include <string_view>

#include "base/sha256.h"

namespace bev {

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

}  // namespace bev
