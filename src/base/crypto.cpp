#include "base/crypto.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#include <climits>

#include "base/check.h"
#include "base/format.h"

namespace bev {

namespace {

void require(bool is_done, const char* what) {
  if (is_done) return;
  std::array<char, 256> why{};
  ERR_error_string_n(ERR_get_error(), why.data(), why.size());
  throw Error(ErrorKind::Device, format("libcrypto: {} failed: {}", what, why.data()));
}

struct Algorithms {
  EVP_MD* sha256 = nullptr;
  EVP_MAC* hmac = nullptr;
};

// Kept until the process ends, and no handler at exit frees them: a thread may still use them then.
// The machine's openssl.cnf is not read: it may name modules made for another libcrypto.
const Algorithms& algorithms() {
  static const Algorithms all = [] {
    require(OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT | OPENSSL_INIT_NO_LOAD_CONFIG, nullptr) == 1,
            "its start");
    const Algorithms found{.sha256 = EVP_MD_fetch(nullptr, "SHA256", nullptr),
                           .hmac = EVP_MAC_fetch(nullptr, "HMAC", nullptr)};
    require(found.sha256 != nullptr && found.hmac != nullptr, "fetching SHA-256 and HMAC");
    return found;
  }();
  return all;
}

unsigned char* chars(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }
const unsigned char* chars(const std::byte* bytes) {
  return reinterpret_cast<const unsigned char*>(bytes);
}

}  // namespace

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  require(context_ != nullptr && EVP_DigestInit_ex2(context_, algorithms().sha256, nullptr) == 1,
          "SHA-256");
}

Sha256::Sha256(const Sha256& other) : Sha256() { *this = other; }

Sha256& Sha256::operator=(const Sha256& other) {
  if (this == &other) return *this;
  require(EVP_MD_CTX_copy_ex(context_, other.context_) == 1, "copying a SHA-256 sum");
  return *this;
}

Sha256::~Sha256() { EVP_MD_CTX_free(context_); }

void Sha256::add(std::span<const std::byte> bytes) {
  require(EVP_DigestUpdate(context_, bytes.data(), bytes.size()) == 1, "SHA-256");
}

Sha256Digest Sha256::digest() const {
  const Sha256 last = *this;
  Sha256Digest digest;
  require(EVP_DigestFinal_ex(last.context_, chars(digest.data()), nullptr) == 1, "SHA-256");
  return digest;
}

std::string sha256(std::span<const std::byte> bytes) {
  Sha256 sum;
  sum.add(bytes);
  std::string text;
  for (const std::byte each : sum.digest())
    text += format("{:02x}", std::to_integer<unsigned>(each));
  return text;
}

HmacKey::HmacKey(std::span<const std::byte> key) {
  const std::shared_ptr<EVP_MAC_CTX> context(EVP_MAC_CTX_new(algorithms().hmac), EVP_MAC_CTX_free);
  std::string digest = "SHA256";
  const std::array params{OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest.data(), 0),
                          OSSL_PARAM_construct_end()};
  // Without an address there would be no key, which is not the same as an empty one.
  const std::byte none{};
  require(context != nullptr && EVP_MAC_init(context.get(), chars(key.empty() ? &none : key.data()),
                                             key.size(), params.data()) == 1,
          "HMAC");
  context_ = context;
}

Sha256Digest HmacKey::sign(std::initializer_list<std::span<const std::byte>> parts) const {
  const std::unique_ptr<EVP_MAC_CTX, decltype(&EVP_MAC_CTX_free)> context(
      EVP_MAC_CTX_dup(context_.get()), EVP_MAC_CTX_free);
  bool is_done = context != nullptr;
  for (const std::span<const std::byte> part : parts)
    is_done = is_done && EVP_MAC_update(context.get(), chars(part.data()), part.size()) == 1;
  Sha256Digest tag;
  size_t size = 0;
  require(is_done && EVP_MAC_final(context.get(), chars(tag.data()), &size, tag.size()) == 1 &&
              size == tag.size(),
          "HMAC");
  return tag;
}

bool same_tag(std::span<const std::byte, 32> a, std::span<const std::byte, 32> b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

void fill_random(std::span<std::byte> bytes) {
  algorithms();
  BEV_CHECK(bytes.size() <= INT_MAX, Internal, "{} random bytes at once", bytes.size());
  require(RAND_bytes(chars(bytes.data()), static_cast<int>(bytes.size())) == 1, "RAND_bytes");
}

}  // namespace bev
