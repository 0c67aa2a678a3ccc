// A server for connections whose peers prove that they know the secret of a job. It accepts, reads
// and writes, and limits the number of peers that wait for admission and their time.
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

// Used by one thread; wake() may be called from any thread.
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
    Time last_received{};      // when it connected; then, by default, when it last sent something
    int number = -1;           // rank or machine that it was admitted as; -1: not yet
    bool was_refused = false;  // it was notified and is expected to close
    bool wants_out = false;    // epoll also waits until it is writable
    std::string broken{};      // why it can no longer be used
  };
  using Peers = std::map<uint64_t, std::unique_ptr<Peer>>;  // oldest first
  struct Limits {
    size_t message_bytes = 0;
    size_t strangers = 256;  // maximum of peers not yet admitted; then the oldest is closed
    std::chrono::milliseconds tick{500};
  };

  PeerServer(Socket listener, const std::string& secret, const Limits& limits, Log log);
  virtual ~PeerServer() = default;

  // Handles a message of a peer. An Error closes the connection.
  virtual void take(Peer& peer, const std::string& bytes, Time now) = 0;
  // Called when bytes of an admitted peer have arrived.
  virtual void received(Peer& peer, Time now) { peer.last_received = now; }
  // Called when the connection of an admitted peer has ended; `broken` gives the reason.
  virtual void lost(const Peer& peer) = 0;
  // Called every Limits::tick.
  virtual void tick(Time now) = 0;

  // To be polled for input.
  int epoll_descriptor() const { return epoll_.get(); }
  // Handles pending events; waits for them until the next tick, but no longer than `most`.
  void serve(std::chrono::milliseconds most);
  // Ends the wait of serve().
  void wake() const { wake_.raise(); }

  Peers& peers() { return peers_; }
  const Peers& peers() const { return peers_; }
  void let_in(Peer& peer, int number);
  // Logs the refusal and sends `parcel` to the peer.
  void refuse(Peer& peer, const std::string& why, Parcel parcel);
  // Never calls lost(): settle() does.
  void send(Peer& peer, Parcel parcel);
  // Marks the connection as broken. Only the first reason is kept.
  void break_off(Peer& peer, const std::string& why);
  // Removes the broken peers, and calls lost() for those that were admitted.
  void settle();
  // Closes all connections silently, so that peers do not wait for a server that has failed.
  void hang_up();
  // Sends the pending messages, then waits until the peers have closed, but no longer than `most`.
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
  std::vector<uint64_t> broken_;  // peers that settle() removes
  uint64_t next_id_;
  size_t stranger_count_ = 0;
  bool is_accepting_ = true;
  Time next_tick_{};
};

}  // namespace bev
