// One end of an authenticated connection, without the socket: both ends have proved that they know
// the secret of the job. It converts messages to bytes for the socket and back. The bytes are TLS
// 1.3 with an external pre-shared key derived from the secret, always with a fresh key exchange;
// there are no certificates, tickets or early data. A message is its length (4 bytes,
// little-endian) and its content.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/crypto.h"
#include "base/function_ref.h"
#include "net/socket.h"

namespace bev {

enum class LinkRole : uint8_t { Client, Server };

// Protocol version of a link. Ends with different versions refuse each other.
inline constexpr std::string_view kLinkVersion = "bevctl02";

// An encoded message, shared by all its recipients.
using Parcel = std::shared_ptr<const std::string>;

// Once it is open, one thread may receive while another sends.
class SecureLink {
 public:
  // `message_most`: bytes of the longest message that it accepts.
  SecureLink(LinkRole role, const HmacKey& secret, size_t message_most,
             std::string_view version = kLinkVersion);
  ~SecureLink();
  SecureLink(SecureLink&&) noexcept;
  SecureLink& operator=(SecureLink&&) noexcept;

  // Whether the other end has authenticated.
  bool is_open() const { return is_open_; }

  // Takes bytes from the other end. A Comm error describes what is wrong with it. The link is then
  // unusable, except that outgoing() may still return an alert to send.
  void receive(std::span<const std::byte> bytes);
  // The next complete message from the other end. Comm error as in receive().
  std::optional<std::string> next();

  // REQUIRES: it is open.
  void send(Parcel message);
  // The bytes to write to the socket now; empty if there are none.
  std::string_view outgoing();
  // Reports that `bytes` of outgoing() were written.
  void written(size_t bytes) { out_at_ += bytes; }

 private:
  struct Tls;

  void shake_hands();
  void decrypt();
  void encrypt(std::string_view bytes);

  std::unique_ptr<Tls> tls_;
  bool is_open_ = false;
  // State of the receiving side.
  size_t message_most_, handshake_bytes_ = 0;
  std::string in_;  // decrypted
  size_t in_at_ = 0;
  // State of the sending side.
  std::deque<Parcel> messages_;
  size_t message_at_ = 0;  // encrypted bytes of the first message, including its length
  std::string out_;
  size_t out_at_ = 0;
};

// A SecureLink over a non-blocking socket.

enum class Reading : uint8_t {
  Waits,   // nothing more at the moment
  Closed,  // the other end has closed its sending side
};

// As with the link, one thread may receive while another sends once it is open.
class SecureConnection {
 public:
  SecureConnection(Socket socket, LinkRole role, const HmacKey& secret, size_t message_most)
      : socket_(std::move(socket)), link_(role, secret, message_most) {}

  int descriptor() const { return socket_.get(); }
  bool is_open() const { return link_.is_open(); }
  // Bytes read from the socket so far.
  uint64_t bytes_read() const { return bytes_read_; }

  // Reads the available bytes, up to a limit per call, and passes complete messages to `take`. A
  // Comm error describes what is wrong with the connection or the other end.
  Reading receive(FunctionRef<void(std::string message)> take);

  void send(Parcel message) { link_.send(std::move(message)); }
  // Writes what the socket accepts, waits for the other end until `until` but at most a second, and
  // receives.
  Reading exchange(SteadyTime until, FunctionRef<void(std::string message)> take);
  // Writes what the socket accepts without blocking. False: some bytes are left. Comm error as in
  // receive().
  bool flush();
  // Closes the sending side.
  void close_sending();

 private:
  Socket socket_;
  SecureLink link_;
  uint64_t bytes_read_ = 0;
};

// Connects to a server and completes the handshake, within 5 s and before the deadline. Null: a
// later attempt may succeed; `why` gives the reason. A Comm error begins with `failure`: the other
// end will never be a server with this secret.
std::unique_ptr<SecureConnection> connect_securely(const std::string& host, int port,
                                                   const HmacKey& secret, size_t message_most,
                                                   SteadyTime deadline, const std::string& failure,
                                                   std::string& why);

// Warnings about rejected connections: the first few individually, then a count.

class RefusalLog {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit RefusalLog(std::function<void(const std::string&)> note) : note_(std::move(note)) {}

  void refused(const std::string& who, const std::string& why);
  // Call from time to time: logs the count.
  void tick(Time now);

 private:
  std::function<void(const std::string&)> note_;
  uint64_t noted_ = 0, not_noted_ = 0;
  Time next_{};
};

}  // namespace bev
