// One end of a connection that both ends have proved to be of the same job, without the socket:
// bytes go in and out, messages come out and go in. The bytes are TLS 1.3 with an external
// pre-shared key made from the secret of the job, always with a fresh key exchange; there are no
// certificates, tickets or early data. A message is its length (4 bytes, little-endian) and itself.
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

// Of all that is said on a link; ends of different versions refuse each other.
inline constexpr std::string_view kLinkVersion = "bevctl02";

// A message as bytes, the same for all who get it.
using Parcel = std::shared_ptr<const std::string>;

// Once it is open, one thread may receive while another sends.
class SecureLink {
 public:
  // The longest message it takes is of `message_most` bytes.
  SecureLink(LinkRole role, const HmacKey& secret, size_t message_most,
             std::string_view version = kLinkVersion);
  ~SecureLink();
  SecureLink(SecureLink&&) noexcept;
  SecureLink& operator=(SecureLink&&) noexcept;

  // Whether the other end has proved itself.
  bool is_open() const { return is_open_; }

  // Bytes from the other end. A Comm error says what is wrong with it; the link is of no use then,
  // but what it still wants to send may be sent.
  void receive(std::span<const std::byte> bytes);
  // The next whole message of the other end; a Comm error as above.
  std::optional<std::string> next();

  // REQUIRES: it is open.
  void send(Parcel message);
  // What is to be written to the socket now; empty when there is nothing.
  std::string_view outgoing();
  // So much of it was.
  void written(size_t bytes) { out_at_ += bytes; }

 private:
  struct Tls;

  void shake_hands();
  void decrypt();
  void encrypt(std::string_view bytes);

  std::unique_ptr<Tls> tls_;
  bool is_open_ = false;
  // Of the end that receives.
  size_t message_most_, handshake_bytes_ = 0;
  std::string in_;  // decrypted
  size_t in_at_ = 0;
  // Of the end that sends.
  std::deque<Parcel> messages_;
  size_t message_at_ = 0;  // of the first: bytes that are encrypted, its length among them
  std::string out_;
  size_t out_at_ = 0;
};

// A SecureLink over a socket that does not block.

enum class Reading : uint8_t {
  Waits,   // nothing more at the moment
  Closed,  // the other end said that it sends nothing more
};

// As with the link: once it is open, one thread may receive while another sends.
class SecureConnection {
 public:
  SecureConnection(Socket socket, LinkRole role, const HmacKey& secret, size_t message_most)
      : socket_(std::move(socket)), link_(role, secret, message_most) {}

  int descriptor() const { return socket_.get(); }
  bool is_open() const { return link_.is_open(); }
  // Bytes read so far, of whatever kind.
  uint64_t bytes_read() const { return bytes_read_; }

  // Reads what there is, but no more than a fair share, and gives whole messages to `take`. A Comm
  // error says what is wrong with the connection or the other end.
  Reading receive(FunctionRef<void(std::string message)> take);

  void send(Parcel message) { link_.send(std::move(message)); }
  // Writes what it can, waits for the other end, at most a second and until `until`, and receives.
  Reading exchange(SteadyTime until, FunctionRef<void(std::string message)> take);
  // Writes what the socket takes at once. False: some is left. A Comm error as above.
  bool flush();
  // Says that nothing more comes from here.
  void close_sending();

 private:
  Socket socket_;
  SecureLink link_;
  uint64_t bytes_read_ = 0;
};

// Connects to a server and shakes hands with it, within 5 s. Null: it may work later; `why` says
// what failed. A Comm error begins with `failure`: the other end will never be a server with this
// secret.
std::unique_ptr<SecureConnection> connect_securely(const std::string& host, int port,
                                                   const HmacKey& secret, size_t message_most,
                                                   SteadyTime deadline, const std::string& failure,
                                                   std::string& why);

// Notes about strangers: the first few one by one, then how many.

class RefusalLog {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit RefusalLog(std::function<void(const std::string&)> note) : note_(std::move(note)) {}

  void refused(const std::string& who, const std::string& why);
  // From time to time.
  void tick(Time now);

 private:
  std::function<void(const std::string&)> note_;
  uint64_t noted_ = 0, not_noted_ = 0;
  Time next_{};
};

}  // namespace bev
