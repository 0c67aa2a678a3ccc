// How two ends of a connection find out that both know the secret of a job, before either reads
// anything whose size the other one chooses:
//
//   client -> server   mark, nonce
//   server -> client   mark, nonce, proof of the server
//   client -> server   mark, proof of the client
//
// A proof signs a label and both nonces with the secret. The labels differ, so that no proof can be
// sent back to the one it came from; the client says nothing more to a server without a proof.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/crypto.h"

namespace bev {

enum class LinkRole : uint8_t { Client, Server };

// Keys of one connection, one for each direction.
struct LinkKeys {
  HmacKey sending, receiving;
};

class Handshake {
 public:
  Handshake(LinkRole role, const HmacKey& secret);

  // How many bytes the other end sends next; none when it is over.
  size_t expected() const;
  // Takes them; a Comm error says what is wrong with the other end. What is to be sent next, then
  // or even so, is appended to `out`.
  void receive(std::span<const std::byte> bytes, std::string& out);
  // What this end sends first.
  std::string opening() const;
  bool is_over() const { return keys_.has_value(); }
  const LinkKeys& keys() const { return *keys_; }

 private:
  using Nonce = std::array<std::byte, 32>;
  enum class Stage : uint8_t { Nonce, Proof, Over };

  Sha256Digest sign(std::string_view label) const;
  void take_client_nonce(std::span<const std::byte> bytes, std::string& out);
  void take_server_proof(std::span<const std::byte> bytes, std::string& out);
  void take_client_proof(std::span<const std::byte> bytes);
  void finish();

  LinkRole role_;
  HmacKey secret_;
  Stage stage_ = Stage::Nonce;
  Nonce client_{}, server_{};
  std::optional<LinkKeys> keys_;
};

}  // namespace bev
