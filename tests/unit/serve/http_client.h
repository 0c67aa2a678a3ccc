// A client of HTTP that can also misbehave. Everything fails after some seconds rather than hang.
#pragma once

#include <string>
#include <string_view>

#include "net/socket.h"

namespace bev::test {

struct Reply {
  int status = 0;  // 0: the connection ended before one came
  std::string head{};
  std::string body{};  // chunks put together

  bool has(std::string_view text) const {
    return head.find(text) != std::string::npos || body.find(text) != std::string::npos;
  }
};

class HttpClient {
 public:
  explicit HttpClient(int port);

  void send(std::string_view bytes);
  // The next reply.
  Reply receive(bool is_head = false);
  // Something has come that was not read yet.
  bool has_reply() const;
  // A request and its reply.
  Reply ask(std::string_view method, std::string_view path, std::string_view body = "",
            std::string_view headers = "");
  // All that comes until the text has come, or the connection ends.
  std::string read_until(std::string_view text);
  // Whether the other end closes, once what it sent is read.
  bool is_closed_by_server();
  // "I send nothing more."
  void half_close();
  void close() { socket_.close(); }
  // Closes as a process that is killed does with data unread.
  void reset();
  void receive_slowly(int buffer_bytes);

 private:
  bool read_more();
  std::string take(size_t count);

  Socket socket_;
  std::string bytes_;
};

std::string request_text(std::string_view method, std::string_view path, std::string_view body = "",
                         std::string_view headers = "");

}  // namespace bev::test
