// One end of a connection that both ends have proved to be of the same job, without the socket:
// bytes go in and out, messages come out and go in.
#pragma once

#include <optional>

#include "net/frames.h"
#include "net/handshake.h"

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

}  // namespace bev
