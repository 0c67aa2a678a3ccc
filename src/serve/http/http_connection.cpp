#include "serve/http/http_connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <utility>

#include "base/check.h"
#include "net/socket.h"

namespace bev {

namespace {

constexpr size_t kReadAtOnce = size_t{64} << 10;
// Of requests that came before their turn.
constexpr size_t kReadAhead = size_t{64} << 10;

// Above our own limits: the system decides only about bytes that it has accepted.
constexpr std::chrono::milliseconds kLeastWriteLimit{10000};

// A client whose cable was cut closes no connection: the system probes it.
void enable_keepalive(int socket, std::chrono::milliseconds write) {
  const int on = 1, idle = 30, interval = 10, count = 3;
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
  const auto limit = static_cast<unsigned>(std::max(write, kLeastWriteLimit).count());
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, sizeof limit);
}

}  // namespace

HttpConnection::HttpConnection(Socket socket, const HttpLimits& limits, HttpHandler& handler,
                               std::function<void()> touched, Time now)
    : socket_(std::move(socket)),
      limits_(limits),
      handler_(handler),
      touched_(std::move(touched)),
      parser_(limits.sizes),
      deadline_(now + limits.receive) {
  make_quick(socket_.get());
  enable_keepalive(socket_.get(), limits.write);
}

HttpConnection::~HttpConnection() { lose(); }

uint32_t HttpConnection::interest() const {
  uint32_t events = 0;
  const bool has_room = !is_answering_ || parser_.waiting() < kReadAhead;
  if (!saw_end_) events |= EPOLLRDHUP | (has_room ? EPOLLIN : 0U);
  if (!unsent_.empty()) events |= EPOLLOUT;
  return events;
}

void HttpConnection::receive(Time now) {
  std::array<char, kReadAtOnce> bytes;
  const ssize_t count = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
  if (count < 0) {
    if (errno != EAGAIN && errno != EINTR) hang_up();
    return;
  }
  if (count == 0) {
    saw_end_ = true;
    // Who sends no more has gone, as far as anybody can tell.
    if (is_answering_ && !is_answered_) hang_up();
    if (mode_ == Mode::Lingering) mode_ = Mode::Over;
    return;
  }
  if (mode_ != Mode::Open) return;
  if (!is_answering_ && !is_receiving_) {
    is_receiving_ = true;
    deadline_ = now + limits_.receive;
  }
  parser_.add({bytes.data(), static_cast<size_t>(count)});
}

void HttpConnection::hang_up() {
  lose();
  mode_ = Mode::Over;
}

// The work ends with the client.
void HttpConnection::lose() {
  if (!is_answering_) return;
  const bool has_all = is_answered_ && unsent_.empty();
  if (!has_all) record_.status = 499;
  finish();
}

void HttpConnection::finish() {
  is_answering_ = false;
  record_.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  work_.reset();
  handler_.finished(record_);
}

void HttpConnection::settle(Time now) {
  while (mode_ != Mode::Over) {
    flush(now);
    if (is_answering_ && is_answered_) {
      finish();
      if (!keeps_alive_ && mode_ == Mode::Open) mode_ = Mode::Closing;
      is_receiving_ = parser_.has_begun();
      deadline_ = now + (is_receiving_ ? limits_.receive : limits_.idle);
      continue;
    }
    if (mode_ == Mode::Closing && unsent_.empty()) {
      // Closing while something unread lies in the socket would destroy what was sent last.
      ::shutdown(socket_.get(), SHUT_WR);
      mode_ = saw_end_ ? Mode::Over : Mode::Lingering;
      deadline_ = now + limits_.linger;
      return;
    }
    if (mode_ != Mode::Open || is_answering_ || !unsent_.empty()) return;
    if (!take_next(now)) return;
  }
}

// Whether there was one, or something to refuse.
bool HttpConnection::take_next(Time now) {
  switch (parser_.advance()) {
    case HttpParser::State::Ready: start(parser_.take(), now); return true;
    case HttpParser::State::Bad: refuse(parser_.status(), parser_.problem(), now); return true;
    case HttpParser::State::NeedsMore: break;
  }
  if (saw_end_) {
    mode_ = Mode::Over;
  } else if (parser_.takes_expectation()) {
    unsent_.add("HTTP/1.1 100 Continue\r\n\r\n");
    write_deadline_ = now + limits_.write;
    return true;
  }
  return false;
}

void HttpConnection::start(HttpRequest request, Time now) {
  is_answering_ = true;
  is_answered_ = is_chunked_ = false;
  keeps_alive_ = keeps_alive_ && request.keeps_alive;
  is_old_ = request.is_old;
  is_head_ = request.method == "HEAD";
  began_ = now;
  record_ = {.method = request.method, .path = request.path};
  try {
    work_ = handler_.handle(std::move(request), *this);
    BEV_CHECK(work_ != nullptr || is_answered_, Internal, "a request is answered by nobody");
  } catch (const std::exception& error) {
    if (record_.status != 0) return hang_up();
    send(handler_.error(record_, 500, error.what()));
  }
}

// What the server says by itself; the connection cannot be read further.
void HttpConnection::refuse(int status, const std::string& why, Time now) {
  is_answering_ = true;
  is_answered_ = is_chunked_ = is_head_ = false;
  keeps_alive_ = false;
  began_ = now;
  record_ = {.method = "-", .path = "-"};
  send(handler_.error(record_, status, why));
}

void HttpConnection::turn_away(Time now) {
  refuse(503, "there are too many connections; try again later", now);
}

void HttpConnection::close_soon(Time now) {
  keeps_alive_ = false;
  if (mode_ == Mode::Open && !is_answering_) mode_ = Mode::Closing;
  settle(now);
}

std::string HttpConnection::framing(std::string_view of_body) {
  return format("{}Connection: {}\r\n", of_body, keeps_alive_ ? "keep-alive" : "close");
}

std::string HttpConnection::whole_head(const HttpResponse& response) {
  return head_of(response, framing(format("Content-Length: {}\r\n", response.body.size())));
}

void HttpConnection::send(HttpResponse response) {
  std::string head = whole_head(response);
  if (head.size() + response.body.size() > limits_.answer_bytes) {
    // Who asks for the same again gets the same: no error of the server.
    response = handler_.error(
        record_, 400,
        format("the answer has {} bytes, and this server sends {} at most; ask for fewer or "
               "shorter texts, for fewer logprobs, or for a stream",
               response.body.size(), limits_.answer_bytes));
    head = whole_head(response);
  }
  record_.status = response.status;
  if (unsent_.empty()) write_deadline_ = std::chrono::steady_clock::now() + limits_.write;
  unsent_.add(head);
  if (!is_head_) unsent_.add(response.body);
  is_answered_ = true;
  touched_();
}

void HttpConnection::begin(HttpResponse head) {
  record_.status = head.status;
  is_chunked_ = !is_old_;
  if (is_old_) keeps_alive_ = false;
  if (unsent_.empty()) write_deadline_ = std::chrono::steady_clock::now() + limits_.write;
  unsent_.add(head_of(head, framing(is_chunked_ ? "Transfer-Encoding: chunked\r\n" : "")));
  touched_();
}

void HttpConnection::write(std::string_view piece) {
  if (piece.empty() || is_head_) return;
  if (unsent_.empty()) write_deadline_ = std::chrono::steady_clock::now() + limits_.write;
  if (is_chunked_) unsent_.add(format("{:x}\r\n", piece.size()));
  unsent_.add(piece);
  if (is_chunked_) unsent_.add("\r\n");
  touched_();
}

void HttpConnection::end() {
  if (is_chunked_) unsent_.add("0\r\n\r\n");
  is_answered_ = true;
  touched_();
}

void HttpConnection::flush(Time now) {
  while (!unsent_.empty()) {
    const std::string_view bytes = unsent_.view();
    const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count < 0) return hang_up();
    unsent_.use(static_cast<size_t>(count));
    write_deadline_ = now + limits_.write;
  }
  if (unsent_.size() > limits_.answer_bytes) hang_up();
}

void HttpConnection::look_at_deadline(Time now) {
  if (mode_ == Mode::Over) return;
  if (!unsent_.empty()) {
    if (now >= write_deadline_) hang_up();
    return;
  }
  if (is_answering_ || now < deadline_) return;
  if (mode_ == Mode::Open && is_receiving_ && parser_.has_begun())
    return refuse(408, "the request did not come within the time for it", now);
  hang_up();
}

}  // namespace bev
