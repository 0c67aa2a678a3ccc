#include "unit/serve/http_client.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "base/format.h"
#include "net/address.h"
#include "net/socket.h"

namespace bev::test {

namespace {

constexpr int kPatienceMs = 10000;

}  // namespace

HttpClient::HttpClient(int port) {
  std::string why;
  socket_ = try_to_connect(resolve("127.0.0.1", port),
                           std::chrono::steady_clock::now() + std::chrono::seconds(5), why);
  EXPECT_TRUE(socket_.is_open()) << why;
}

void HttpClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    pollfd waiting{.fd = socket_.get(), .events = POLLOUT, .revents = 0};
    if (::poll(&waiting, 1, kPatienceMs) <= 0) return;
    const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

bool HttpClient::read_more() {
  pollfd waiting{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  if (::poll(&waiting, 1, kPatienceMs) <= 0) {
    ADD_FAILURE() << "nothing came within " << kPatienceMs << " ms";
    return false;
  }
  std::array<char, 65536> bytes;
  const ssize_t count = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
  if (count <= 0) return false;
  bytes_.append(bytes.data(), static_cast<size_t>(count));
  return true;
}

bool HttpClient::has_reply() const {
  pollfd waiting{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  return !bytes_.empty() || ::poll(&waiting, 1, 0) > 0;
}

std::string HttpClient::take(size_t count) {
  while (bytes_.size() < count && read_more()) {
  }
  const std::string text = bytes_.substr(0, std::min(count, bytes_.size()));
  bytes_.erase(0, text.size());
  return text;
}

std::string HttpClient::read_until(std::string_view text) {
  while (bytes_.find(text) == std::string::npos && read_more()) {
  }
  const size_t at = bytes_.find(text);
  return take(at == std::string::npos ? bytes_.size() : at + text.size());
}

Reply HttpClient::receive(bool is_head) {
  Reply reply;
  reply.head = read_until("\r\n\r\n");
  if (!reply.head.starts_with("HTTP/1.1 ")) return reply;
  reply.status = std::stoi(reply.head.substr(9, 3));
  if (is_head || reply.status == 100) return reply;
  if (const size_t at = reply.head.find("Content-Length: "); at != std::string::npos) {
    reply.body = take(std::stoul(reply.head.substr(at + 16)));
  } else if (reply.head.find("Transfer-Encoding: chunked") != std::string::npos) {
    while (true) {
      const std::string size = read_until("\r\n");
      const size_t count = size.empty() ? 0 : std::stoul(size, nullptr, 16);
      reply.body += take(count);
      if (take(2) != "\r\n" || count == 0) break;
    }
  } else {
    while (read_more()) {
    }
    reply.body = take(bytes_.size());
  }
  return reply;
}

Reply HttpClient::ask(std::string_view method, std::string_view path, std::string_view body,
                      std::string_view headers) {
  send(request_text(method, path, body, headers));
  return receive(method == "HEAD");
}

bool HttpClient::is_closed_by_server() {
  const size_t before = bytes_.size();
  while (read_more()) {
  }
  const bool said_nothing = bytes_.size() == before;
  EXPECT_TRUE(said_nothing) << bytes_;
  return said_nothing;
}

void HttpClient::half_close() { ::shutdown(socket_.get(), SHUT_WR); }

void HttpClient::reset() {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  socket_.close();
}

void HttpClient::receive_slowly(int buffer_bytes) {
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &buffer_bytes, sizeof buffer_bytes);
}

std::string request_text(std::string_view method, std::string_view path, std::string_view body,
                         std::string_view headers) {
  const std::string length =
      body.empty() && method != "POST" ? "" : format("Content-Length: {}\r\n", body.size());
  return format("{} {} HTTP/1.1\r\nHost: localhost\r\n{}{}\r\n{}", method, path, length, headers,
                body);
}

}  // namespace bev::test
