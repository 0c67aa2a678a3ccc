// An HTTP server: one thread, which waits for all connections at once.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "net/socket.h"
#include "serve/http/http_connection.h"

namespace bev {

class HttpServer {
 public:
  // `listener` as listen_on() makes it; the handler must outlive this.
  HttpServer(Socket listener, const HttpLimits& limits, HttpHandler& handler);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Serves until stop(), or until all is answered after drain(). One thread calls it.
  void run();

  // All of these from any thread.
  // Calls it in the thread of run(), soon.
  void post(std::function<void()> call);
  // No new connections and no new requests; what is being answered has that long to end.
  void drain(std::chrono::milliseconds limit);
  void stop();

  size_t connections() const { return connection_count_; }
  bool is_draining() const { return is_draining_; }

 private:
  using Time = HttpConnection::Time;

  void watch(int operation, int descriptor, uint64_t id, uint32_t events) const;
  void accept_some(Time now);
  void pause_accepting();
  void settle(Time now);
  void run_posted();
  void tick(Time now);
  void begin_draining(Time now);

  HttpLimits limits_;
  HttpHandler& handler_;
  Socket listener_, epoll_;
  EventFd wake_;
  struct Peer {
    std::unique_ptr<HttpConnection> connection;
    uint32_t interest = 0;
  };
  std::unordered_map<uint64_t, Peer> peers_;
  std::vector<uint64_t> touched_;
  uint64_t next_id_;
  bool is_accepting_ = true;
  Time next_tick_{}, drain_deadline_{};

  std::atomic<bool> is_stopped_{false}, is_draining_{false};
  std::atomic<size_t> connection_count_{0};
  std::mutex mutex_;
  std::vector<std::function<void()>> posted_;
};

}  // namespace bev
