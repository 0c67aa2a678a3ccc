// The first rank's end of all control connections: lets ranks in, keeps strangers out, and runs the
// hub.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "coordination/coordination_client.h"
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
  class Loop;
  std::unique_ptr<Loop> loop_;
  std::thread thread_;
};

}  // namespace bev
