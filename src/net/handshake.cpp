#include "net/handshake.h"

#include <algorithm>

#include "base/check.h"
#include "base/crypto.h"

namespace bev {

namespace {

// With the version of all that follows.
constexpr std::string_view kMark = "bevctl01";
// In place of the client's proof: the server's was wrong.
constexpr std::string_view kDisagreement = "bevctlno";
constexpr size_t kNonceBytes = 32, kProofBytes = 32;

std::span<const std::byte> as_byte_span(std::string_view text) {
  return std::as_bytes(std::span(text));
}

void append_bytes(std::string& out, std::span<const std::byte> bytes) {
  out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

bool begins_with(std::span<const std::byte> bytes, std::string_view mark) {
  return std::equal(mark.begin(), mark.end(), bytes.begin(),
                    [](char a, std::byte b) { return static_cast<std::byte>(a) == b; });
}

}  // namespace

Handshake::Handshake(LinkRole role, const HmacKey& secret) : role_(role), secret_(secret) {
  fill_random(role == LinkRole::Client ? client_ : server_);
}

size_t Handshake::expected() const {
  if (stage_ == Stage::Over) return 0;
  if (role_ == LinkRole::Client) return kMark.size() + kNonceBytes + kProofBytes;
  return kMark.size() + (stage_ == Stage::Nonce ? kNonceBytes : kProofBytes);
}

std::string Handshake::opening() const {
  if (role_ == LinkRole::Server) return "";
  std::string out(kMark);
  append_bytes(out, client_);
  return out;
}

Sha256Digest Handshake::sign(std::string_view label) const {
  return secret_.sign({as_byte_span(label), client_, server_});
}

void Handshake::receive(std::span<const std::byte> bytes, std::string& out) {
  BEV_CHECK(!is_over() && bytes.size() == expected(), Internal,
            "a handshake that expects {} bytes is given {}", expected(), bytes.size());
  const bool declined =
      role_ == LinkRole::Server && stage_ == Stage::Proof && begins_with(bytes, kDisagreement);
  BEV_CHECK(!declined, Comm, "it has another secret");
  BEV_CHECK(begins_with(bytes, kMark), Comm, "it is no rank of a job of this version of Bevatron");
  bytes = bytes.subspan(kMark.size());
  if (role_ == LinkRole::Client) {
    take_server_proof(bytes, out);
  } else if (stage_ == Stage::Nonce) {
    take_client_nonce(bytes, out);
  } else {
    take_client_proof(bytes);
  }
}

void Handshake::take_client_nonce(std::span<const std::byte> bytes, std::string& out) {
  std::copy_n(bytes.begin(), kNonceBytes, client_.begin());
  out += kMark;
  append_bytes(out, server_);
  append_bytes(out, sign("proof of the server"));
  stage_ = Stage::Proof;
}

void Handshake::take_server_proof(std::span<const std::byte> bytes, std::string& out) {
  std::copy_n(bytes.begin(), kNonceBytes, server_.begin());
  if (!same_tag(bytes.subspan(kNonceBytes).first<kProofBytes>(), sign("proof of the server"))) {
    out += kDisagreement;
    out.append(kProofBytes, '\0');
    throw Error(ErrorKind::Comm, "it has another secret");
  }
  out += kMark;
  append_bytes(out, sign("proof of the client"));
  finish();
}

void Handshake::take_client_proof(std::span<const std::byte> bytes) {
  BEV_CHECK(same_tag(bytes.first<kProofBytes>(), sign("proof of the client")), Comm,
            "it has another secret");
  finish();
}

void Handshake::finish() {
  const HmacKey to_server(sign("key to the server")), to_client(sign("key to the client"));
  keys_ = role_ == LinkRole::Client ? LinkKeys{.sending = to_server, .receiving = to_client}
                                    : LinkKeys{.sending = to_client, .receiving = to_server};
  stage_ = Stage::Over;
}

}  // namespace bev
