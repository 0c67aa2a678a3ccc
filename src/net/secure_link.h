// One end of a connection that both ends have proved to be of the same job, without the socket:
// bytes go in and out, messages come out and go in.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/function_ref.h"
#include "net/frames.h"
#include "net/handshake.h"
#include "net/socket.h"

namespace bev {

// Once it is open, one thread may receive while another sends.
class SecureLink {
 public:
  // The longest message it takes is of `message_most` bytes.
  SecureLink(LinkRole role, const HmacKey& secret, size_t message_most);

  // Whether the other end has proved itself.
  bool is_open() const { return reader_.has_value(); }

  // Bytes from the other end. A Comm error says what is wrong with it; the link is of no use then,
  // but what it still wants to send may be sent.
  void receive(std::span<const std::byte> bytes);
  // The next whole message of the other end; a Comm error as above.
  std::optional<std::string> next();

  // REQUIRES: it is open.
  void send(std::shared_ptr<const std::string> message) { writer_->add(std::move(message)); }
  // What is to be written to the socket now; empty when there is nothing.
  std::string_view outgoing();
  // So much of it was.
  void written(size_t bytes) { out_at_ += bytes; }

 private:
  Handshake handshake_;
  size_t message_most_;
  std::string in_;  // of the handshake
  std::optional<FrameReader> reader_;
  std::optional<FrameWriter> writer_;
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

  void send(std::shared_ptr<const std::string> message) { link_.send(std::move(message)); }
  // Writes what the socket takes at once. False: some is left. A Comm error as above.
  bool flush();
  // Says that nothing more comes from here.
  void close_sending();

 private:
  Socket socket_;
  SecureLink link_;
  uint64_t bytes_read_ = 0;
};

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
