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

struct ControlServerOptions {
  int size = 1;
  std::string secret, job;
  std::chrono::milliseconds join_limit{}, heartbeat{}, silence{}, limit{};
  std::function<void(const std::string&)> note;  // never empty
  const Activity* activity = nullptr;            // of this process; outlives the server
};

class ControlServer {
 public:
  // Serves from a thread of its own.
  ControlServer(Socket listener, ControlServerOptions options);
  // What was said last still goes out, as far as it does so quickly.
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  std::vector<RankTimes> times() const;

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
  std::thread thread_;
};

}  // namespace bev
