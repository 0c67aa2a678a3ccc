// A SecureLink over a socket that does not block.
#pragma once

#include "base/function_ref.h"
#include "net/secure_link.h"
#include "net/socket.h"

namespace bev {

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

}  // namespace bev
