// How a rank gets to the server: connects, proves itself, says who it is, waits for the others.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "coordination/coordination_messages.h"
#include "net/secure_connection.h"

namespace bev {

struct JoiningOptions {
  std::string host;
  int port = 0;
  std::string secret;
  HelloMessage hello;
  std::chrono::milliseconds limit{};
  std::function<void(const std::string&)> note;  // never empty
};

struct JoinedJob {
  std::unique_ptr<SecureConnection> connection;
  std::vector<RankPlace> places;
  // What came behind the news that all have joined.
  std::vector<std::string> messages;
};

// A Comm error says why not.
JoinedJob join_job(const JoiningOptions& options);

}  // namespace bev
