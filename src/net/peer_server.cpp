#include "net/peer_server.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "base/check.h"
#include "net/address.h"

namespace bev {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr uint64_t kListenerId = 0, kWakeId = 1, kFirstPeerId = 2;
constexpr std::chrono::seconds kStrangerLimit{5};
constexpr int kAcceptedAtOnce = 128;  // then other connections are served

using Events = std::array<epoll_event, 256>;

std::span<const epoll_event> wait_for_events(int epoll, Events& events, milliseconds most) {
  const int count = ::epoll_wait(epoll, events.data(), static_cast<int>(events.size()),
                                 static_cast<int>(most.count()));
  BEV_CHECK(count >= 0 || errno == EINTR, Comm, "epoll: {}", std::strerror(errno));
  return std::span(events).first(static_cast<size_t>(std::max(count, 0)));
}

}  // namespace

PeerServer::PeerServer(Socket listener, const std::string& secret, const Limits& limits, Log log)
    : secret_(secret),
      limits_(limits),
      listener_(std::move(listener)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      refusals_(std::move(log)),
      next_id_(kFirstPeerId) {
  BEV_CHECK(epoll_.is_open(), Comm, "cannot make an epoll: {}", std::strerror(errno));
  watch(listener_.get(), kListenerId, false, true);
  watch(wake_.descriptor(), kWakeId, false, true);
}

void PeerServer::watch(int descriptor, uint64_t id, bool out, bool is_new) const {
  epoll_event event{};
  event.events = EPOLLIN | (out ? EPOLLOUT : 0U);
  event.data.u64 = id;
  BEV_CHECK(
      ::epoll_ctl(epoll_.get(), is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, descriptor, &event) == 0,
      Comm, "cannot watch a connection: {}", std::strerror(errno));
}

void PeerServer::serve(milliseconds most) {
  const auto left = std::chrono::ceil<milliseconds>(next_tick_ - steady_clock::now());
  Events events;
  const auto ready = wait_for_events(epoll_.get(), events, std::clamp(left, milliseconds(0), most));
  const Time now = steady_clock::now();
  for (const epoll_event& event : ready) {
    if (event.data.u64 == kWakeId) {
      wake_.clear();
    } else if (event.data.u64 == kListenerId) {
      accept_some(now);
    } else if (const auto found = peers_.find(event.data.u64); found != peers_.end()) {
      Peer& peer = *found->second;
      if ((event.events & EPOLLOUT) != 0) flush(peer);
      // Reading finds errors and closed connections, after the data sent before.
      if ((event.events & ~static_cast<uint32_t>(EPOLLOUT)) != 0) read(peer, now);
    }
    settle();
  }
  if (now < next_tick_) return;
  next_tick_ = now + limits_.tick;
  look_after_strangers(now);
  tick(now);
  settle();
}

void PeerServer::accept_some(Time now) {
  for (int turn = 0; turn < kAcceptedAtOnce; ++turn) {
    sockaddr_storage storage{};
    socklen_t size = sizeof storage;
    auto* data = reinterpret_cast<sockaddr*>(&storage);
    Socket socket(::accept4(listener_.get(), data, &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.is_open()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) pause_accepting();
      return;
    }
    make_quick(socket.get());
    const uint64_t id = next_id_++;
    auto peer = std::make_unique<Peer>(Peer{
        .id = id,
        .connection =
            SecureConnection(std::move(socket), LinkRole::Server, secret_, limits_.message_bytes),
        .from = Address(data, size).text(),
        .last_received = now});
    try {
      watch(peer->connection.descriptor(), id, false, true);
    } catch (const Error& error) {
      refusals_.refused(peer->from, error.what());
      continue;
    }
    peers_.emplace(id, std::move(peer));
    if (++stranger_count_ > limits_.strangers) make_room();
  }
}

// accept() failed, usually since the process has no descriptor left: closes the oldest peer that is
// not admitted, and accepts again at the next tick.
void PeerServer::pause_accepting() {
  make_room();
  epoll_event none{};
  none.data.u64 = kListenerId;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, listener_.get(), &none);
  is_accepting_ = false;
}

// Closes the oldest peer that is not admitted; a peer that has completed the handshake only if
// there is no other.
void PeerServer::make_room() {
  const auto oldest = [&](bool has_proved) {
    return std::find_if(peers_.begin(), peers_.end(), [&](const auto& entry) {
      const Peer& peer = *entry.second;
      return peer.number < 0 && peer.broken.empty() && peer.connection.is_open() == has_proved;
    });
  };
  auto found = oldest(false);
  if (found == peers_.end()) found = oldest(true);
  if (found == peers_.end()) return;
  break_off(*found->second, "too many connections wait to be let in, this one for longest");
  settle();
}

void PeerServer::read(Peer& peer, Time now) {
  if (!peer.broken.empty()) return;
  try {
    const uint64_t before = peer.connection.bytes_read();
    const Reading reading = peer.connection.receive([&](const std::string& bytes) {
      if (!peer.was_refused && peer.broken.empty()) take(peer, bytes, now);
    });
    if (peer.number >= 0 && peer.connection.bytes_read() != before) received(peer, now);
    if (peer.number < 0) flush(peer);
    if (reading == Reading::Closed) break_off(peer, "its connection closed");
  } catch (const Error& error) {
    // Sends the TLS alert, so that the peer can report that the secrets differ.
    if (peer.number < 0) flush(peer);
    break_off(peer, peer.number >= 0 ? format("its connection broke: {}", error.what())
                                     : std::string(error.what()));
  }
}

void PeerServer::let_in(Peer& peer, int number) {
  peer.number = number;
  --stranger_count_;
}

void PeerServer::refuse(Peer& peer, const std::string& why, Parcel parcel) {
  refusals_.refused(peer.from, why);
  send(peer, std::move(parcel));
  peer.was_refused = true;
}

void PeerServer::send(Peer& peer, Parcel parcel) {
  if (!peer.broken.empty() || peer.was_refused) return;
  peer.connection.send(std::move(parcel));
  flush(peer);
}

void PeerServer::flush(Peer& peer) {
  if (!peer.broken.empty()) return;
  try {
    const bool is_done = peer.connection.flush();
    if (is_done == peer.wants_out) {
      peer.wants_out = !is_done;
      watch(peer.connection.descriptor(), peer.id, peer.wants_out, false);
    }
  } catch (const Error& error) {
    break_off(peer, format("its connection broke: {}", error.what()));
  }
}

void PeerServer::break_off(Peer& peer, const std::string& why) {
  if (!peer.broken.empty()) return;
  peer.broken = why;
  broken_.push_back(peer.id);
}

void PeerServer::settle() {
  while (!broken_.empty()) {
    const auto found = peers_.find(broken_.back());
    broken_.pop_back();
    const std::unique_ptr<Peer> peer = std::move(found->second);
    peers_.erase(found);
    if (peer->number >= 0) {
      lost(*peer);
      continue;
    }
    --stranger_count_;
    if (!peer->was_refused) refusals_.refused(peer->from, peer->broken);
  }
}

void PeerServer::look_after_strangers(Time now) {
  if (!is_accepting_) {
    is_accepting_ = true;
    watch(listener_.get(), kListenerId, false, false);
  }
  for (const auto& [id, peer] : peers_)
    if (peer->number < 0 && now - peer->last_received >= kStrangerLimit)
      break_off(*peer, format("it did not say who it is within {} s", kStrangerLimit.count()));
  refusals_.tick(now);
}

void PeerServer::hang_up() {
  listener_.close();
  peers_.clear();
  broken_.clear();
}

// Closing a connection with unread input may destroy the data sent last. The server therefore
// closes its sending side and waits until the peers close.
void PeerServer::farewell(milliseconds most) {
  const Time deadline = steady_clock::now() + most;
  listener_.close();
  for (const auto& [id, peer] : peers_)
    if (peer->number < 0) break_off(*peer, "the server ends");
  settle();
  for (const auto& [id, peer] : peers_)
    if (!peer->wants_out) peer->connection.close_sending();
  Events events;
  while (!peers_.empty() && steady_clock::now() < deadline) {
    for (const epoll_event& event : wait_for_events(epoll_.get(), events, milliseconds(50))) {
      const auto found = peers_.find(event.data.u64);
      if (found == peers_.end()) continue;
      Peer& peer = *found->second;
      if (peer.wants_out) {
        flush(peer);
        if (!peer.wants_out) peer.connection.close_sending();
      }
      try {
        if (peer.connection.receive([](const std::string&) {}) == Reading::Closed)
          break_off(peer, "its connection closed");
      } catch (const Error& error) {
        break_off(peer, error.what());
      }
    }
    for (const uint64_t id : std::exchange(broken_, {})) peers_.erase(id);
  }
}

}  // namespace bev
