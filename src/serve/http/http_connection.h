// One connection of a client: requests are read and answered one after the other; while one is
// being answered the next may come, and its end is noticed.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "net/socket.h"
#include "serve/http/http_message.h"
#include "serve/http/http_parser.h"

namespace bev {

struct HttpLimits {
  HttpSizes sizes{};
  size_t connections = 1024;
  // For a whole request, from its first byte (the first one: from the connection) to its last.
  std::chrono::milliseconds receive{10000};
  std::chrono::milliseconds idle{75000};   // between two requests
  std::chrono::milliseconds write{30000};  // without the client taking a byte of what waits for it
  std::chrono::milliseconds linger{2000};  // for the client to close after the last answer
  // Of an answer, and of what waits for a client that does not take a stream.
  size_t answer_bytes = size_t{64} << 20;
};

class HttpConnection final : private HttpAnswer {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `touched` is called when something is written to the connection, so that somebody calls
  // settle(). All three must outlive this.
  HttpConnection(Socket socket, const HttpLimits& limits, HttpHandler& handler,
                 std::function<void()> touched, Time now);
  ~HttpConnection() override;

  int descriptor() const { return socket_.get(); }
  // The events of epoll that it waits for.
  uint32_t interest() const;

  // What epoll told. settle() must follow each.
  void receive(Time now);
  void hang_up();
  // Gets on as far as possible: sends, ends what is answered, takes the next request.
  void settle(Time now);
  void look_at_deadline(Time now);
  // There are too many connections: says so and closes.
  void turn_away(Time now);
  // The answer that is being made is the last one.
  void close_soon(Time now);

  bool is_over() const { return mode_ == Mode::Over; }
  bool is_answering() const { return is_answering_; }

 private:
  enum class Mode : uint8_t {
    Open,
    Closing,    // when all is sent
    Lingering,  // all is sent; what still comes is thrown away
    Over,
  };

  void send(HttpResponse response) override;
  void begin(HttpResponse head) override;
  void write(std::string_view piece) override;
  void end() override;
  HttpRecord& record() override { return record_; }

  void start(HttpRequest request, Time now);
  void finish();
  void lose();
  void refuse(int status, const std::string& why, Time now);
  std::string framing(std::string_view of_body);
  std::string whole_head(const HttpResponse& response);
  bool take_next(Time now);
  void flush(Time now);

  Socket socket_;
  const HttpLimits& limits_;
  HttpHandler& handler_;
  std::function<void()> touched_;
  HttpParser parser_;
  Mode mode_ = Mode::Open;
  Time deadline_;        // of what it waits for besides the handler
  Time write_deadline_;  // while something is unsent
  ByteQueue unsent_;
  bool is_receiving_ = true;  // the deadline is that of a request
  bool saw_end_ = false;      // the client sends nothing more

  // Of the request that is being answered.
  bool is_answering_ = false, is_answered_ = false;
  bool keeps_alive_ = true, is_old_ = false, is_head_ = false, is_chunked_ = false;
  Time began_{};
  HttpRecord record_;
  std::unique_ptr<HttpJob> work_;
};

}  // namespace bev
