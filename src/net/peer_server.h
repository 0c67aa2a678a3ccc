// A server of connections whose other ends prove that they know the secret of a job: accepts them,
// reads, writes, and limits how many may wait, and how long, before they are let in.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "net/secure_link.h"
#include "net/socket.h"

namespace bev {

// One thread uses it; wake() may be called from any.
class PeerServer {
 public:
  using Log = std::function<void(const std::string&)>;

  PeerServer(const PeerServer&) = delete;
  PeerServer& operator=(const PeerServer&) = delete;

 protected:
  using Time = std::chrono::steady_clock::time_point;
  struct Peer {
    uint64_t id = 0;
    SecureConnection connection;
    std::string from;          // its address
    Time heard{};              // when it connected; once it was let in: when it last sent something
    int number = -1;           // of the rank or machine it was let in as; -1: not yet
    bool was_refused = false;  // it has been told, and is expected to close
    bool wants_out = false;    // epoll is asked to tell when it can be written
    std::string broken{};      // why it can no longer be used
  };
  using Peers = std::map<uint64_t, std::unique_ptr<Peer>>;  // oldest first
  struct Limits {
    size_t message_bytes = 0;
    size_t strangers = 256;  // peers that were not let in yet; of more, the oldest goes
    std::chrono::milliseconds tick{500};
  };

  PeerServer(Socket listener, const std::string& secret, const Limits& limits, Log log);
  virtual ~PeerServer() = default;

  // A message of a peer. An Error ends its connection.
  virtual void take(Peer& peer, const std::string& bytes, Time now) = 0;
  // Any bytes of a peer that was let in have come.
  virtual void heard(Peer& peer, Time now) { peer.heard = now; }
  // The connection of a peer that was let in is no more; `broken` says why.
  virtual void lost(const Peer& peer) = 0;
  // Every Limits::tick.
  virtual void tick(Time now) = 0;

  // To be polled for input.
  int epoll_descriptor() const { return epoll_.get(); }
  // Handles what there is; waits for it until the next tick, but no longer than `most`.
  void serve(std::chrono::milliseconds most);
  // Ends the wait of serve().
  void wake() const { wake_.raise(); }

  Peers& peers() { return peers_; }
  const Peers& peers() const { return peers_; }
  void let_in(Peer& peer, int number);
  // Says so to people and to the peer.
  void refuse(Peer& peer, const std::string& why, Parcel parcel);
  // Never calls lost(): settle() does.
  void send(Peer& peer, Parcel parcel);
  // The first reason counts.
  void break_off(Peer& peer, const std::string& why);
  // Forgets the peers that broke off, and calls lost().
  void settle();
  // Closes everything without a word, so that nobody waits for a server that has failed.
  void hang_up();
  // Sends what is left, then waits until the peers have closed, but no longer than `most`.
  void farewell(std::chrono::milliseconds most);

 private:
  void watch(int descriptor, uint64_t id, bool out, bool is_new) const;
  void accept_some(Time now);
  void pause_accepting();
  void make_room();
  void read(Peer& peer, Time now);
  void flush(Peer& peer);
  void look_after_strangers(Time now);

  HmacKey secret_;
  Limits limits_;
  Socket listener_, epoll_;
  EventFd wake_;
  RefusalLog refusals_;
  Peers peers_;
  std::vector<uint64_t> broken_;  // peers that settle() looks at
  uint64_t next_id_;
  size_t stranger_count_ = 0;
  bool is_accepting_ = true;
  Time next_tick_{};
};

}  // namespace bev
