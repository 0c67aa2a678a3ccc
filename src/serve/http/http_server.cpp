#include "serve/http/http_server.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>

#include "base/check.h"
#include "base/process.h"

namespace bev {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr uint64_t kListenerId = 0, kWakeId = 1, kFirstPeerId = 2;
constexpr milliseconds kTick{50};
constexpr int kAcceptedAtOnce = 64;
// Connections over the limit that are told so.
constexpr size_t kTurnedAway = 64;

}  // namespace

HttpServer::HttpServer(Socket listener, const HttpLimits& limits, HttpHandler& handler)
    : limits_(limits),
      handler_(handler),
      listener_(std::move(listener)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      next_id_(kFirstPeerId) {
  BEV_CHECK(epoll_.is_open(), Comm, "cannot make an epoll: {}", std::strerror(errno));
  raise_open_file_limit();
  watch(EPOLL_CTL_ADD, listener_.get(), kListenerId, EPOLLIN);
  watch(EPOLL_CTL_ADD, wake_.descriptor(), kWakeId, EPOLLIN);
}

void HttpServer::post(std::function<void()> call) {
  const std::lock_guard lock(mutex_);
  posted_.push_back(std::move(call));
  if (posted_.size() == 1) wake_.raise();
}

void HttpServer::drain(milliseconds limit) {
  post([this, limit] {
    const Time now = steady_clock::now();
    drain_deadline_ = now + limit;
    if (!is_draining_.exchange(true)) begin_draining(now);
  });
}

void HttpServer::stop() {
  is_stopped_ = true;
  wake_.raise();
}

void HttpServer::watch(int operation, int descriptor, uint64_t id, uint32_t events) const {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  BEV_CHECK(::epoll_ctl(epoll_.get(), operation, descriptor, &event) == 0, Comm,
            "cannot watch a connection: {}", std::strerror(errno));
}

void HttpServer::run() {
  std::array<epoll_event, 256> events{};
  while (!is_stopped_) {
    const auto left = std::chrono::ceil<milliseconds>(next_tick_ - steady_clock::now());
    const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                                   static_cast<int>(std::max<int64_t>(left.count(), 0)));
    BEV_CHECK(count >= 0 || errno == EINTR, Comm, "cannot wait for connections: {}",
              std::strerror(errno));
    const Time now = steady_clock::now();
    for (const epoll_event& event :
         std::span(events).first(static_cast<size_t>(std::max(count, 0)))) {
      const uint64_t id = event.data.u64;
      if (id == kListenerId) {
        accept_some(now);
      } else if (id == kWakeId) {
        wake_.clear();
      } else if (const auto found = peers_.find(id); found != peers_.end()) {
        HttpConnection& connection = *found->second.connection;
        if ((event.events & (EPOLLERR | EPOLLHUP)) != 0) {
          connection.hang_up();
        } else if ((event.events & EPOLLIN) != 0) {
          connection.receive(now);
        } else if ((event.events & EPOLLRDHUP) != 0) {
          // The end lies behind requests for which there is no room yet.
          connection.hang_up();
        }
        touched_.push_back(id);
      }
    }
    run_posted();
    if (now >= next_tick_) tick(now);
    settle(now);
    if (is_draining_ && (peers_.empty() || now >= drain_deadline_)) break;
  }
  peers_.clear();
  connection_count_ = 0;
}

void HttpServer::run_posted() {
  std::vector<std::function<void()>> calls;
  {
    const std::lock_guard lock(mutex_);
    calls.swap(posted_);
  }
  for (const std::function<void()>& call : calls) call();
}

void HttpServer::accept_some(Time now) {
  for (int i = 0; i < kAcceptedAtOnce; ++i) {
    Socket socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.is_open()) {
      // Out of descriptors or memory: asking again at once would not help.
      if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) pause_accepting();
      return;
    }
    if (peers_.size() >= limits_.connections + kTurnedAway) continue;
    const bool is_too_many = peers_.size() >= limits_.connections;
    const uint64_t id = next_id_++;
    auto connection = std::make_unique<HttpConnection>(
        std::move(socket), limits_, handler_, [this, id] { touched_.push_back(id); }, now);
    Peer& peer = peers_[id];
    peer.interest = connection->interest();
    watch(EPOLL_CTL_ADD, connection->descriptor(), id, peer.interest);
    peer.connection = std::move(connection);
    if (is_too_many) peer.connection->turn_away(now);
  }
}

void HttpServer::pause_accepting() {
  is_accepting_ = false;
  watch(EPOLL_CTL_MOD, listener_.get(), kListenerId, 0);
}

// What is touched while others settle is settled too.
void HttpServer::settle(Time now) {
  for (size_t i = 0; i < touched_.size(); ++i) {
    const uint64_t id = touched_[i];
    const auto found = peers_.find(id);
    if (found == peers_.end()) continue;
    HttpConnection& connection = *found->second.connection;
    connection.settle(now);
    if (connection.is_over()) {
      peers_.erase(found);
    } else if (const uint32_t interest = connection.interest();
               interest != found->second.interest) {
      found->second.interest = interest;
      watch(EPOLL_CTL_MOD, connection.descriptor(), id, interest);
    }
  }
  touched_.clear();
  connection_count_ = peers_.size();
}

void HttpServer::tick(Time now) {
  next_tick_ = now + kTick;
  if (!is_accepting_ && listener_.is_open()) {
    is_accepting_ = true;
    watch(EPOLL_CTL_MOD, listener_.get(), kListenerId, EPOLLIN);
  }
  for (auto& [id, peer] : peers_) {
    peer.connection->look_at_deadline(now);
    if (peer.connection->is_over()) touched_.push_back(id);
  }
  handler_.tick();
}

void HttpServer::begin_draining(Time now) {
  listener_.close();
  for (auto& [id, peer] : peers_) {
    peer.connection->close_soon(now);
    touched_.push_back(id);
  }
}

}  // namespace bev
