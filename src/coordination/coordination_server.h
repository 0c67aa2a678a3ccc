// The first rank's end of all control connections: admits ranks, rejects other peers, and runs the
// JobState.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/activity.h"
#include "coordination/coordination_client.h"
#include "coordination/job_state.h"
#include "coordination/rendezvous.h"
#include "net/peer_server.h"

namespace bev {

class CoordinationServer final : private PeerServer {
 public:
  // Serves on a dedicated thread. `options` and `activity` must outlive this.
  CoordinationServer(Socket listener, const CoordinationClient::Options& options,
                     const Activity& activity);
  // Sends the pending messages, for at most a second.
  ~CoordinationServer() override;

  std::vector<RankTimes> times() const;

 private:
  void take(Peer& peer, const std::string& bytes, Time now) override;
  void received(Peer& peer, Time now) override;
  void lost(const Peer& peer) override;
  void tick(Time now) override;

  void run();
  void greet(Peer& peer, const CoordinationMessage& message);
  void begin_job();

  const CoordinationClient::Options& options_;
  const Activity& activity_;
  std::atomic<bool> stopped_{false};
  RendezvousRoster roster_;
  std::shared_ptr<JobState> job_state_;  // set when all ranks have joined
  std::vector<Peer*> ranks_;             // by rank
  Time started_ = std::chrono::steady_clock::now(), next_note_;
  bool gave_up_ = false;
  mutable std::mutex job_state_mutex_;  // guards the pointer job_state_, which times() reads
  std::thread thread_;                  // owns all members but stopped_ and job_state_mutex_
};

}  // namespace bev
