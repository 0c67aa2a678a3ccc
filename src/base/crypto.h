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

// Incremental SHA-256. A copy continues from the state of the original.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256& other);
  Sha256& operator=(const Sha256& other);

  void add(std::span<const std::byte> bytes);
  // The digest of all bytes added so far; more may follow.
  Sha256Digest digest() const;

 private:
  evp_md_ctx_st* context_;
};

// The digest in lower-case hexadecimal digits.
std::string sha256(std::span<const std::byte> bytes);

// Key of HMAC-SHA-256 (RFC 2104), prepared once for all messages. Copies share it; several threads
// may sign with it concurrently.
class HmacKey {
 public:
  explicit HmacKey(std::span<const std::byte> key);
  explicit HmacKey(std::string_view key) : HmacKey(std::as_bytes(std::span(key))) {}

  // Signs the concatenation of the parts.
  Sha256Digest sign(std::initializer_list<std::span<const std::byte>> parts) const;

 private:
  std::shared_ptr<const evp_mac_ctx_st> context_;
};

// Compares in constant time.
bool same_tag(std::span<const std::byte, 32> a, std::span<const std::byte, 32> b);

// Fills `bytes` with cryptographically secure random bytes.
void fill_random(std::span<std::byte> bytes);

inline uint64_t random_number() {
  std::array<std::byte, 8> bytes{};
  fill_random(bytes);
  uint64_t number = 0;
  std::memcpy(&number, bytes.data(), bytes.size());
  return number;
}

// A random name of 16 hexadecimal digits.
inline std::string random_name() { return format("{:016x}", random_number()); }

}  // namespace bev
