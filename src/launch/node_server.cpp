#include "launch/node_server.h"

#include <algorithm>

#include "base/check.h"
#include "launch/node_messages.h"
#include "net/socket.h"

namespace bev {

namespace {

constexpr std::chrono::milliseconds kJobEndLimit{2000};

int comm_code() { return exit_code(ErrorKind::Comm); }

std::shared_ptr<const std::string> bytes_of(const NodeMessage& message) {
  return std::make_shared<const std::string>(encode_node_message(message));
}

}  // namespace

NodeServer::NodeServer(Options options)
    : PeerServer(listen_on(options.host, options.port), options.secret,
                 {.message_bytes = kNodeMessageMost}, options.note),
      options_(std::move(options)) {}

void NodeServer::take(Peer& peer, const std::string& bytes, Time) {
  const NodeMessage message = decode_node_message(bytes);
  if (const auto* hello = std::get_if<NodeHello>(&message)) {
    BEV_CHECK(peer.number < 0, Comm, "it says twice which machine it is");
    greet(peer, *hello);
    return;
  }
  BEV_CHECK(peer.number >= 0, Comm, "it does not say which machine it is");
  if (const auto* end = std::get_if<NodeEnd>(&message)) {
    const auto place = running_.find(peer.number);
    BEV_CHECK(place != running_.end() && place->second == peer.id, Comm,
              "it tells the end of what it took no part in");
    ended(peer.number, *end);
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
  if (const std::string why = objection(hello); !why.empty())
    return refuse(
        peer, why,
        bytes_of(NodeJobEnd{.code = exit_code(ErrorKind::Usage),
                            .words = format("the first machine does not take this one: {}", why)}));
  // One that was started again is believed rather than one of which nothing may be heard any more.
  if (Peer* old = peer_of(hello.number)) {
    const std::string why =
        format("another launcher, at {}, says that it is machine {}", peer.from, hello.number);
    send(*old, bytes_of(NodeJobEnd{.code = comm_code(), .words = why}));
    break_off(*old, why);
  }
  settle();
  let_in(peer, hello.number);
  hellos_[hello.number] = hello;
  options_.note(format("{} has come, from {}", name_of(hello.number), peer.from));
  if (!running_.empty())
    send(peer, bytes_of(NodeNote{"an attempt is under way; this machine waits for the next one"}));
}

void NodeServer::lost(const Peer& peer) {
  const std::string words = format("{} is gone: {}", name_of(peer.number), peer.broken);
  options_.note(words);
  const auto place = running_.find(peer.number);
  if (place != running_.end() && place->second == peer.id)
    ended(peer.number, {.code = comm_code(), .words = words});
}

void NodeServer::ended(int number, const NodeEnd& end) {
  running_.erase(number);
  ends_[number] = end;
  if (end.code != 0 && failure_.empty()) failure_ = format("{} has failed", name_of(number));
  if (end.code != 0) stop(failure_);
}

void NodeServer::tick(Time now) {
  const bool is_heartbeat_due = now >= next_heartbeat_;
  if (is_heartbeat_due) next_heartbeat_ = now + kNodeHeartbeat;
  for (const auto& [id, peer] : peers()) {
    if (peer->number < 0) continue;
    if (now - peer->last_received >= kNodeTimeout)
      break_off(*peer, format("no heartbeat for {} s", kNodeTimeout.count()));
    if (is_heartbeat_due) send(*peer, bytes_of(NodeHeartbeat{}));
  }
}

std::vector<NodeHello> NodeServer::waiting() const {
  std::vector<NodeHello> all;
  for (const auto& [number, hello] : hellos_)
    if (peer_of(number) != nullptr && !running_.contains(number)) all.push_back(hello);
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
      send(*peer, bytes_of(place));
  }
  settle();
}

void NodeServer::stop(const std::string& why) {
  if (std::exchange(is_stopped_, true)) return;
  for (const auto& [number, id] : running_)
    if (Peer* peer = peer_of(number)) send(*peer, bytes_of(NodeStop{why}));
}

void NodeServer::drop_unresponsive() {
  while (!running_.empty()) {
    const int number = running_.begin()->first;
    if (Peer* peer = peer_of(number)) break_off(*peer, "it does not say how its ranks ended");
    ended(number, {.code = comm_code(), .words = name_of(number) + " is gone"});
  }
  settle();
}

std::string NodeServer::name_of(int number) const {
  const auto found = hellos_.find(number);
  return found == hellos_.end() ? format("machine {}", number)
                                : format("machine {} (host {})", number, found->second.host);
}

NodeServer::Peer* NodeServer::peer_of(int number) const {
  for (const auto& [id, peer] : peers())
    if (peer->number == number && peer->broken.empty()) return peer.get();
  return nullptr;
}

void NodeServer::notify(const std::string& text) {
  for (const auto& [id, peer] : peers())
    if (peer->number >= 0) send(*peer, bytes_of(NodeNote{text}));
  settle();
}

void NodeServer::end_job(const NodeJobEnd& over) {
  for (const auto& [id, peer] : peers())
    if (peer->number >= 0) send(*peer, bytes_of(over));
  running_.clear();
  farewell(kJobEndLimit);
}

}  // namespace bev
