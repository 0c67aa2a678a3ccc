// Rendezvous: which ranks have joined, and how a rank joins.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "coordination/coordination_client.h"
#include "coordination/coordination_messages.h"
#include "net/secure_link.h"

namespace bev {

class RendezvousRoster {
 public:
  RendezvousRoster(int size, std::string job);

  // Why this one is not let in; empty: it is.
  std::string objection(const HelloMessage& hello) const;
  void join(const HelloMessage& hello);
  void leave(int rank);

  bool is_complete() const { return joined_ == size(); }
  int size() const { return static_cast<int>(places_.size()); }
  // "ranks 3, 5-7 of 8"
  std::string missing_text() const;
  const std::vector<RankIdentity>& places() const { return places_; }

 private:
  std::string job_;
  std::vector<RankIdentity> places_;  // rank -1: not here
  int joined_ = 0;
};

// How a rank gets to the server: connects, proves itself, says who it is, waits for the others.

struct JoinedJob {
  std::unique_ptr<SecureConnection> connection;
  std::vector<RankIdentity> places;
  // What came behind the news that all have joined.
  std::vector<std::string> messages;
};

// A Comm error says why not.
JoinedJob join_job(const CoordinationClient::Options& options);

}  // namespace bev
