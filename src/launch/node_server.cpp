#include "launch/node_server.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "launch/node_messages.h"
#include "net/address.h"
#include "net/socket.h"

namespace bev {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr uint64_t kListenerId = 0;
constexpr milliseconds kStrangerLimit{5000}, kFarewell{2000};
constexpr size_t kStrangersMost = 256;

int comm_code() { return exit_code(ErrorKind::Comm); }

}  // namespace

NodeServer::NodeServer(Options options)
    : options_(std::move(options)),
      secret_(options_.secret),
      listener_(listen_on(options_.host, options_.port)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      refusals_(options_.note) {
  BEV_CHECK(epoll_.is_open(), Comm, "cannot make an epoll: {}", std::strerror(errno));
  watch(listener_.get(), kListenerId, false, true);
}

void NodeServer::watch(int descriptor, uint64_t id, bool out, bool is_new) const {
  epoll_event event{};
  event.events = EPOLLIN | (out ? EPOLLOUT : 0U);
  event.data.u64 = id;
  BEV_CHECK(
      ::epoll_ctl(epoll_.get(), is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, descriptor, &event) == 0,
      Comm, "cannot watch a connection: {}", std::strerror(errno));
}

void NodeServer::look() {
  std::array<epoll_event, 64> events{};
  const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  const Time now = steady_clock::now();
  for (const epoll_event& event :
       std::span(events).first(static_cast<size_t>(std::max(count, 0)))) {
    if (event.data.u64 == kListenerId) {
      accept_some(now);
    } else if (const auto found = peers_.find(event.data.u64); found != peers_.end()) {
      if ((event.events & EPOLLOUT) != 0) flush(*found->second);
      if ((event.events & ~static_cast<uint32_t>(EPOLLOUT)) != 0) read(*found->second, now);
    }
    settle();
  }
  if (now < next_tick_) return;
  next_tick_ = now + milliseconds(500);
  tick(now);
  settle();
}

void NodeServer::accept_some(Time now) {
  for (;;) {
    sockaddr_storage storage{};
    socklen_t size = sizeof storage;
    auto* data = reinterpret_cast<sockaddr*>(&storage);
    Socket socket(::accept4(listener_.get(), data, &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.is_open()) return;
    const std::string from = Address(data, size).text();
    if (strangers() >= kStrangersMost) {
      refusals_.refused(from, "too many connections wait to be let in");
      continue;
    }
    make_quick(socket.get());
    const uint64_t id = next_id_++;
    auto peer = std::make_unique<Peer>(Peer{
        .id = id,
        .connection =
            SecureConnection(std::move(socket), LinkRole::Server, secret_, kMachineMessageMost),
        .from = from,
        .heard = now});
    watch(peer->connection.descriptor(), id, false, true);
    peers_.emplace(id, std::move(peer));
  }
}

size_t NodeServer::strangers() const {
  return static_cast<size_t>(std::count_if(peers_.begin(), peers_.end(),
                                           [](const auto& entry) { return !entry.second->hello; }));
}

void NodeServer::read(Peer& peer, Time now) {
  if (!peer.broken.empty()) return;
  try {
    const Reading reading = peer.connection.receive([&](const std::string& bytes) {
      if (!peer.was_told_over) take(peer, decode_machine(bytes));
    });
    if (peer.hello) peer.heard = now;
    flush(peer);
    if (reading == Reading::Closed) peer.broken = "its connection closed";
  } catch (const Error& error) {
    peer.broken = error.what();
  }
}

void NodeServer::take(Peer& peer, const NodeMessage& message) {
  if (const auto* hello = std::get_if<NodeHello>(&message)) {
    BEV_CHECK(!peer.hello, Comm, "it says twice which machine it is");
    greet(peer, *hello);
    return;
  }
  BEV_CHECK(peer.hello.has_value(), Comm, "it does not say which machine it is");
  if (const auto* end = std::get_if<NodeEnd>(&message)) {
    const auto place = running_.find(peer.hello->number);
    BEV_CHECK(place != running_.end() && place->second == peer.id, Comm,
              "it tells the end of what it took no part in");
    ended(peer.hello->number, *end);
  } else {
    BEV_CHECK(std::holds_alternative<NodeHeartbeat>(message), Comm, "it says what no machine says");
  }
}

std::string NodeServer::objection(const NodeHello& hello) const {
  const NodeHello& own = options_.own;
  if (hello.number == 0)
    return "machine 0 is the first, which is here; legal is another --node-rank";
  if (hello.job != own.job)
    return format("this is the job \"{}\", not \"{}\" (--rdzv-id)", own.job, hello.job);
  if (hello.least != own.least || hello.most != own.most)
    return format("--nnodes is {}:{} at the first machine and {}:{} there", own.least, own.most,
                  hello.least, hello.most);
  return "";
}

void NodeServer::greet(Peer& peer, const NodeHello& hello) {
  if (const std::string why = objection(hello); !why.empty()) {
    refusals_.refused(peer.from, why);
    dismiss(peer, {.code = exit_code(ErrorKind::Usage),
                   .words = format("the first machine does not take this one: {}", why)});
    return;
  }
  // One that was started again is believed rather than one of which nothing may be heard any more.
  if (Peer* old = peer_of(hello.number))
    dismiss(*old, {.code = comm_code(),
                   .words = format("another launcher, at {}, says that it is machine {}", peer.from,
                                   hello.number)});
  settle();
  peer.hello = hello;
  names_[hello.number] = format("machine {} (host {})", hello.number, hello.host);
  options_.note(format("{} has come, from {}", name_of(hello.number), peer.from));
  if (!running_.empty())
    say(peer, NodeNote{"an attempt is under way; this machine waits for the next one"});
}

void NodeServer::dismiss(Peer& peer, const NodeJobEnd& over) {
  say(peer, over);
  peer.was_told_over = true;
  if (peer.hello) peer.broken = over.words;
}

void NodeServer::say(Peer& peer, const NodeMessage& message) {
  if (!peer.broken.empty() || peer.was_told_over) return;
  peer.connection.send(std::make_shared<const std::string>(encode_machine(message)));
  flush(peer);
}

void NodeServer::flush(Peer& peer) {
  if (!peer.broken.empty()) return;
  try {
    const bool is_done = peer.connection.flush();
    if (is_done == peer.wants_out) {
      peer.wants_out = !is_done;
      watch(peer.connection.descriptor(), peer.id, peer.wants_out, false);
    }
  } catch (const Error& error) {
    peer.broken = error.what();
  }
}

// Forgets the connections that broke off, and notes machines that are gone.
void NodeServer::settle() {
  for (auto next = peers_.begin(); next != peers_.end();) {
    const auto here = next++;
    if (here->second->broken.empty()) continue;
    const std::unique_ptr<Peer> peer = std::move(here->second);
    peers_.erase(here);
    if (!peer->hello) {
      if (!peer->was_told_over) refusals_.refused(peer->from, peer->broken);
      continue;
    }
    const int number = peer->hello->number;
    const std::string words = format("{} is gone: {}", name_of(number), peer->broken);
    options_.note(words);
    const auto place = running_.find(number);
    if (place != running_.end() && place->second == peer->id)
      ended(number, {.code = comm_code(), .words = words});
  }
}

void NodeServer::ended(int number, const NodeEnd& end) {
  running_.erase(number);
  ends_[number] = end;
  if (end.code != 0 && failure_.empty()) failure_ = format("{} has failed", name_of(number));
  if (end.code != 0) stop(failure_);
}

void NodeServer::tick(Time now) {
  refusals_.tick(now);
  const bool is_beat = now >= next_beat_;
  if (is_beat) next_beat_ = now + kMachineBeat;
  for (auto& [id, peer] : peers_) {
    const auto silent = now - peer->heard;
    if (!peer->hello && silent >= kStrangerLimit)
      peer->broken = "it did not say which machine it is within 5 s";
    if (peer->hello && silent >= kMachineSilence)
      peer->broken = format("nothing has been heard of it for {} s", kMachineSilence.count());
    if (peer->hello && is_beat) say(*peer, NodeHeartbeat{});
  }
}

std::vector<NodeHello> NodeServer::waiting() const {
  std::vector<NodeHello> all;
  for (const auto& [id, peer] : peers_)
    if (peer->hello && peer->broken.empty() && !running_.contains(peer->hello->number))
      all.push_back(*peer->hello);
  std::sort(all.begin(), all.end(),
            [](const NodeHello& a, const NodeHello& b) { return a.number < b.number; });
  return all;
}

void NodeServer::start(const std::map<int, NodeAssignment>& places) {
  running_.clear();
  ends_.clear();
  failure_.clear();
  is_stopped_ = false;
  for (const auto& [number, place] : places) {
    Peer* peer = peer_of(number);
    // One that has just gone fails at once.
    running_[number] = peer == nullptr ? 0 : peer->id;
    if (peer == nullptr)
      ended(number, {.code = comm_code(), .words = name_of(number) + " is gone"});
    else
      say(*peer, place);
  }
  settle();
}

void NodeServer::stop(const std::string& why) {
  if (std::exchange(is_stopped_, true)) return;
  for (const auto& [number, id] : running_)
    if (Peer* peer = peer_of(number)) say(*peer, NodeStop{why});
}

void NodeServer::give_up_the_silent() {
  while (!running_.empty()) {
    const int number = running_.begin()->first;
    if (Peer* peer = peer_of(number)) peer->broken = "it does not say how its ranks ended";
    ended(number, {.code = comm_code(), .words = name_of(number) + " is gone"});
  }
  settle();
}

std::string NodeServer::name_of(int number) const {
  const auto found = names_.find(number);
  return found == names_.end() ? format("machine {}", number) : found->second;
}

NodeServer::Peer* NodeServer::peer_of(int number) const {
  for (const auto& [id, peer] : peers_)
    if (peer->hello && peer->hello->number == number && peer->broken.empty()) return peer.get();
  return nullptr;
}

void NodeServer::tell(const std::string& text) {
  for (auto& [id, peer] : peers_)
    if (peer->hello) say(*peer, NodeNote{text});
  settle();
}

// Closing a connection while something unread lies in it may destroy what was sent last: the others
// close first.
void NodeServer::end_job(const NodeJobEnd& over) {
  listener_.close();
  for (auto& [id, peer] : peers_) {
    if (!peer->hello) continue;
    say(*peer, over);
    peer->was_told_over = true;
  }
  running_.clear();
  std::erase_if(peers_, [](const auto& entry) {
    return !entry.second->hello || !entry.second->broken.empty();
  });
  const Time until = steady_clock::now() + kFarewell;
  while (!peers_.empty() && steady_clock::now() < until) {
    pollfd watched{.fd = epoll_.get(), .events = POLLIN, .revents = 0};
    ::poll(&watched, 1, 50);
    std::array<epoll_event, 64> events{};
    const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
    for (const epoll_event& event :
         std::span(events).first(static_cast<size_t>(std::max(count, 0)))) {
      const auto found = peers_.find(event.data.u64);
      if (found == peers_.end()) continue;
      read(*found->second, steady_clock::now());
      if (!found->second->broken.empty()) peers_.erase(found);
    }
  }
}

}  // namespace bev
