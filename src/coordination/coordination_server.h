// The first rank's end of all control connections: lets ranks in, keeps strangers out, and runs the
// hub.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/activity.h"
#include "coordination/job_state.h"
#include "coordination/rendezvous.h"
#include "net/secure_link.h"
#include "net/socket.h"

namespace bev {

struct CoordinationServerOptions {
  int size = 1;
  std::string secret, job;
  std::chrono::milliseconds join_limit{}, heartbeat{}, heartbeat_timeout{}, limit{};
  std::function<void(const std::string&)> log;  // never empty
  const Activity* activity = nullptr;           // of this process; outlives the server
};

class CoordinationServer {
 public:
  // Serves from a thread of its own.
  CoordinationServer(Socket listener, CoordinationServerOptions options);
  // What was said last still goes out, as far as it does so quickly.
  ~CoordinationServer();
  CoordinationServer(const CoordinationServer&) = delete;
  CoordinationServer& operator=(const CoordinationServer&) = delete;

  std::vector<RankTimes> times() const;

 private:
  using Time = std::chrono::steady_clock::time_point;
  // A connection: of a stranger, until it is let in as a rank.
  struct Peer {
    uint64_t id = 0;
    SecureConnection connection;
    std::string from;  // its address
    Time deadline{};   // of a stranger
    int rank = -1;
    bool was_refused = false;  // it has been told, and is expected to go
    bool wants_out = false;    // epoll is asked to tell when it can be written
    std::string broken{};      // why it can no longer be used
  };

  void run();
  // Closes all connections without a word, so that nobody waits for a server that has failed.
  void hang_up();
  void watch(int descriptor, uint64_t id, bool out, bool is_new) const;
  void accept_some(Time now);
  void pause_accepting();
  void make_room();
  void read(Peer& peer, Time now);
  void greet(Peer& peer, const std::string& bytes);
  void let_in(Peer& peer, const HelloMessage& hello);
  void begin_job();
  void refuse(Peer& peer, const std::string& why);
  void say(Peer& peer, Parcel parcel);
  void flush(Peer& peer);
  void break_off(Peer& peer, const std::string& why);
  // Forgets the peers that broke off and tells the hub of ranks that are lost.
  void settle();
  void tick(Time now);
  void tick_joining(Time now);
  void drop_slow_strangers(Time now);
  void farewell();
  Peer* peer_of(int rank) const { return ranks_[static_cast<size_t>(rank)]; }

  CoordinationServerOptions options_;
  HmacKey secret_;
  Socket listener_, epoll_;
  EventFd wake_;
  std::atomic<bool> stopped_{false};
  RefusalLog refusals_;
  RendezvousRoster roster_;
  std::shared_ptr<JobState> hub_;  // when all have joined
  std::unordered_map<uint64_t, std::unique_ptr<Peer>> peers_;
  std::deque<uint64_t> strangers_;  // oldest first; may name some that are gone or let in
  size_t stranger_count_ = 0;
  std::vector<Peer*> ranks_;      // by rank
  std::vector<uint64_t> broken_;  // peers that settle() looks at
  uint64_t next_id_;
  Time started_ = std::chrono::steady_clock::now(), next_tick_ = started_, next_note_;
  std::chrono::milliseconds tick_;
  bool is_accepting_ = true, gave_up_ = false;
  mutable std::mutex hub_mutex_;  // of the pointer, for times()
  std::thread thread_;            // all but hub_mutex_, stopped_ and wake_ belongs to it
};

}  // namespace bev
