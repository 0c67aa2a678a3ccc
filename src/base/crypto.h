// SHA-256, HMAC and random bytes, by libcrypto.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/format.h"

struct evp_md_ctx_st;
struct evp_mac_ctx_st;

namespace bev {

using Sha256Digest = std::array<std::byte, 32>;

// Of bytes that come piece by piece. A copy goes on from where the original stands.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256& other);
  Sha256& operator=(const Sha256& other);

  void add(std::span<const std::byte> bytes);
  // Of all that was added; more may follow.
  Sha256Digest digest() const;

 private:
  evp_md_ctx_st* context_;
};

// In lower-case hexadecimal digits.
std::string sha256(std::span<const std::byte> bytes);

// A key of HMAC-SHA-256 (RFC 2104) with the work done that is the same for every message. Copies
// share it; several threads may sign with it at once.
class HmacKey {
 public:
  explicit HmacKey(std::span<const std::byte> key);
  explicit HmacKey(std::string_view key) : HmacKey(std::as_bytes(std::span(key))) {}

  // Of the parts, one behind the other.
  Sha256Digest sign(std::initializer_list<std::span<const std::byte>> parts) const;

 private:
  std::shared_ptr<const evp_mac_ctx_st> context_;
};

// Takes the same time wherever they differ.
bool same_tag(std::span<const std::byte, 32> a, std::span<const std::byte, 32> b);

// Random bytes that nobody can guess.
void fill_random(std::span<std::byte> bytes);

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
