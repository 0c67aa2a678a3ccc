#include "coordination/coordination_server.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>

#include "base/check.h"
#include "base/process.h"
#include "coordination/rank_text.h"
#include "net/address.h"
#include "net/socket.h"

namespace bev {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr uint64_t kListenerId = 0, kWakeId = 1, kFirstPeerId = 2;
constexpr milliseconds kStrangerLimit{5000};
constexpr milliseconds kFirstWaitNote{2000}, kNextWaitNote{10000};
constexpr milliseconds kFarewell{1000};
constexpr size_t kStrangersLeast = 256;
constexpr int kAcceptedAtOnce = 128;  // then the ranks have their turn

// A whole job may be strangers at once.
size_t strangers_most(int size) { return std::max(kStrangersLeast, static_cast<size_t>(size) * 2); }

Parcel parcel_of(const CoordinationMessage& message) {
  return std::make_shared<const std::string>(encode(message));
}

}  // namespace

CoordinationServer::CoordinationServer(Socket listener, CoordinationServerOptions options)
    : options_(std::move(options)),
      secret_(options_.secret),
      listener_(std::move(listener)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      refusals_(options_.log),
      roster_(options_.size, options_.job),
      ranks_(static_cast<size_t>(options_.size)),
      next_id_(kFirstPeerId),
      next_note_(started_ + kFirstWaitNote),
      tick_(std::clamp(options_.heartbeat / 2, milliseconds(5), milliseconds(500))) {
  BEV_CHECK(epoll_.is_open(), Comm, "cannot make an epoll: {}", std::strerror(errno));
  // Every rank is one.
  if (strangers_most(options_.size) + ranks_.size() > 512) raise_open_file_limit();
  watch(listener_.get(), kListenerId, false, true);
  watch(wake_.descriptor(), kWakeId, false, true);
  thread_ = std::thread([this] {
    try {
      run();
    } catch (const std::exception& error) {
      options_.log(format("the control server has failed: {}", error.what()));
      hang_up();
    }
  });
}

CoordinationServer::~CoordinationServer() {
  stopped_ = true;
  wake_.raise();
  thread_.join();
}

std::vector<RankTimes> CoordinationServer::times() const {
  const std::lock_guard lock(hub_mutex_);
  return hub_ == nullptr ? std::vector<RankTimes>(ranks_.size()) : hub_->times();
}

void CoordinationServer::watch(int descriptor, uint64_t id, bool out, bool is_new) const {
  epoll_event event{};
  event.events = EPOLLIN | (out ? EPOLLOUT : 0U);
  event.data.u64 = id;
  BEV_CHECK(
      ::epoll_ctl(epoll_.get(), is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, descriptor, &event) == 0,
      Comm, "cannot watch a connection: {}", std::strerror(errno));
}

void CoordinationServer::run() {
  std::array<epoll_event, 256> events{};
  while (!stopped_) {
    const auto left = std::chrono::ceil<milliseconds>(next_tick_ - steady_clock::now());
    const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                                   static_cast<int>(std::clamp<int64_t>(left.count(), 0, 1000)));
    BEV_CHECK(count >= 0 || errno == EINTR, Comm, "epoll: {}", std::strerror(errno));
    const Time now = steady_clock::now();
    for (const epoll_event& event :
         std::span(events).first(static_cast<size_t>(std::max(count, 0)))) {
      if (event.data.u64 == kWakeId) {
        wake_.clear();
      } else if (event.data.u64 == kListenerId) {
        accept_some(now);
      } else if (const auto found = peers_.find(event.data.u64); found != peers_.end()) {
        Peer& peer = *found->second;
        if ((event.events & EPOLLOUT) != 0) flush(peer);
        // Errors and ends are found by reading, behind all that was sent before.
        if ((event.events & ~static_cast<uint32_t>(EPOLLOUT)) != 0) read(peer, now);
      }
      settle();
    }
    if (now >= next_tick_) {
      next_tick_ = now + tick_;
      tick(now);
      settle();
    }
  }
  farewell();
}

void CoordinationServer::accept_some(Time now) {
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
        .connection = SecureConnection(std::move(socket), LinkRole::Server, secret_, kMessageMost),
        .from = Address(data, size).text(),
        .deadline = now + kStrangerLimit});
    try {
      watch(peer->connection.descriptor(), id, false, true);
    } catch (const Error& error) {
      refusals_.refused(peer->from, error.what());
      continue;
    }
    peers_.emplace(id, std::move(peer));
    strangers_.push_back(id);
    if (++stranger_count_ > strangers_most(roster_.size())) make_room();
  }
}

// The process has no descriptor left: the oldest stranger gives up its own, and the next tick tries
// again.
void CoordinationServer::pause_accepting() {
  make_room();
  epoll_event none{};
  none.data.u64 = kListenerId;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, listener_.get(), &none);
  is_accepting_ = false;
}

// Whoever has proved itself is on its way in and stays as long as others can go.
void CoordinationServer::make_room() {
  const auto goes_first = [&](uint64_t id) {
    const auto found = peers_.find(id);
    return found != peers_.end() && found->second->broken.empty() &&
           !found->second->connection.is_open();
  };
  auto oldest = std::find_if(strangers_.begin(), strangers_.end(), goes_first);
  if (oldest == strangers_.end()) {
    oldest = std::find_if(strangers_.begin(), strangers_.end(), [&](uint64_t id) {
      const auto found = peers_.find(id);
      return found != peers_.end() && found->second->broken.empty() && found->second->rank < 0;
    });
  }
  if (oldest == strangers_.end()) return;
  Peer& peer = *peers_.at(*oldest);
  strangers_.erase(oldest);
  break_off(peer, "too many connections wait to be let in, this one for longest");
  settle();
}

void CoordinationServer::read(Peer& peer, Time now) {
  if (!peer.broken.empty()) return;
  try {
    const uint64_t before = peer.connection.bytes_read();
    const Reading reading = peer.connection.receive([&](const std::string& bytes) {
      if (peer.was_refused || !peer.broken.empty()) return;
      if (peer.rank < 0) {
        greet(peer, bytes);
      } else {
        BEV_CHECK(hub_ != nullptr, Comm, "it speaks before all have joined");
        hub_->take(peer.rank, decode(bytes), now);
      }
    });
    if (peer.rank >= 0 && hub_ != nullptr && peer.connection.bytes_read() != before)
      hub_->heard(peer.rank, now);
    if (peer.rank < 0) flush(peer);
    if (reading == Reading::Closed) break_off(peer, "its connection closed");
  } catch (const Error& error) {
    break_off(peer, peer.rank >= 0 ? format("its connection broke: {}", error.what())
                                   : std::string(error.what()));
  }
}

void CoordinationServer::greet(Peer& peer, const std::string& bytes) {
  const CoordinationMessage message = decode(bytes);
  const auto* hello = std::get_if<HelloMessage>(&message);
  BEV_CHECK(hello != nullptr, Comm, "it does not say which rank it is");
  std::string why = roster_.objection(*hello);
  if (hub_ != nullptr && hello->job == options_.job)
    why = "this job is complete: all its ranks have joined";
  if (why.empty() && gave_up_) why = "the others have given up waiting";
  if (why.empty()) {
    let_in(peer, *hello);
  } else {
    refuse(peer, why);
  }
}

void CoordinationServer::refuse(Peer& peer, const std::string& why) {
  peer.was_refused = true;
  refusals_.refused(peer.from, cut(why));
  say(peer, parcel_of(RefusedMessage{cut(why)}));
}

void CoordinationServer::let_in(Peer& peer, const HelloMessage& hello) {
  roster_.join(hello);
  peer.rank = hello.rank;
  --stranger_count_;
  ranks_[static_cast<size_t>(hello.rank)] = &peer;
  if (roster_.is_complete()) {
    begin_job();
  } else {
    say(peer, parcel_of(WaitingMessage{cut(roster_.missing_text())}));
  }
}

void CoordinationServer::begin_job() {
  // Hub::lost() comes from settle() alone, so that sending never calls back.
  auto hub = std::make_shared<JobState>(roster_.places(),
                                        JobState::Limits{.heartbeat = options_.heartbeat,
                                                         .silence = options_.heartbeat_timeout,
                                                         .limit = options_.limit},
                                        [this](int rank, Parcel parcel) {
                                          if (Peer* peer = peer_of(rank))
                                            say(*peer, std::move(parcel));
                                        });
  const Parcel joined = parcel_of(JoinedMessage{roster_.places()});
  for (Peer* peer : ranks_) say(*peer, joined);
  const std::lock_guard lock(hub_mutex_);
  hub_ = std::move(hub);
}

void CoordinationServer::say(Peer& peer, Parcel parcel) {
  if (!peer.broken.empty()) return;
  peer.connection.send(std::move(parcel));
  flush(peer);
}

void CoordinationServer::flush(Peer& peer) {
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

void CoordinationServer::break_off(Peer& peer, const std::string& why) {
  if (!peer.broken.empty()) return;
  peer.broken = why;
  broken_.push_back(peer.id);
}

void CoordinationServer::settle() {
  while (!broken_.empty()) {
    const uint64_t id = broken_.back();
    broken_.pop_back();
    const auto found = peers_.find(id);
    const std::unique_ptr<Peer> peer = std::move(found->second);
    peers_.erase(found);
    if (peer->rank < 0) {
      --stranger_count_;
      if (!peer->was_refused) refusals_.refused(peer->from, peer->broken);
      continue;
    }
    ranks_[static_cast<size_t>(peer->rank)] = nullptr;
    if (hub_ != nullptr) {
      hub_->lost(peer->rank, peer->broken);
    } else {
      const RankIdentity place = roster_.places()[static_cast<size_t>(peer->rank)];
      roster_.leave(peer->rank);
      if (!gave_up_)
        options_.log(format("{} left before all had joined ({}); it may come again",
                            place_text(place), peer->broken));
    }
  }
}

void CoordinationServer::tick(Time now) {
  if (!is_accepting_) {
    is_accepting_ = true;
    watch(listener_.get(), kListenerId, false, false);
  }
  drop_slow_strangers(now);
  refusals_.tick(now);
  if (hub_ != nullptr) {
    hub_->tick(now, options_.activity->text());
  } else {
    tick_joining(now);
  }
}

void CoordinationServer::tick_joining(Time now) {
  if (gave_up_) return;
  const std::string missing = roster_.missing_text();
  if (now - started_ >= options_.join_limit) {
    gave_up_ = true;
    const Parcel parcel = parcel_of(RefusedMessage{
        cut(format("{} did not join within {}", missing, seconds_text(options_.join_limit)))});
    for (size_t i = ranks_.size(); i-- > 0;)
      if (ranks_[i] != nullptr) say(*ranks_[i], parcel);
  } else if (now >= next_note_) {
    next_note_ = now + kNextWaitNote;
    options_.log(format("waiting for {}", missing));
    const Parcel parcel = parcel_of(WaitingMessage{cut(missing)});
    for (Peer* peer : ranks_)
      if (peer != nullptr) say(*peer, parcel);
  }
}

void CoordinationServer::drop_slow_strangers(Time now) {
  while (!strangers_.empty()) {
    const auto found = peers_.find(strangers_.front());
    if (found != peers_.end() && found->second->rank < 0) {
      Peer& peer = *found->second;
      if (now < peer.deadline) return;
      break_off(peer, format("it did not say who it is within {}", seconds_text(kStrangerLimit)));
    }
    strangers_.pop_front();
  }
}

void CoordinationServer::hang_up() {
  listener_.close();
  peers_.clear();
}

// Closing a connection while something unread lies in it may destroy what was sent last: the ranks
// close first, who have been told to.
void CoordinationServer::farewell() {
  const Time deadline = steady_clock::now() + kFarewell;
  listener_.close();
  for (auto& [id, peer] : peers_) {
    peer->deadline = deadline;
    if (peer->rank < 0) break_off(*peer, "the server ends");
  }
  settle();
  std::array<epoll_event, 256> events{};
  for (auto& [id, peer] : peers_)
    if (!peer->wants_out) peer->connection.close_sending();
  while (!peers_.empty() && steady_clock::now() < deadline) {
    const int count =
        ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 50);
    for (const epoll_event& event :
         std::span(events).first(static_cast<size_t>(std::max(count, 0)))) {
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
