// The connection of a launcher to that of the first machine.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "launch/node_messages.h"
#include "launch/supervisor.h"
#include "net/secure_link.h"

namespace bev {

class NodeClient final : public PollSource {
 public:
  struct Options {
    std::string host;  // of the first machine
    int port = 0;
    std::string secret;
    NodeHello hello;
    std::chrono::milliseconds limit{};
    LaunchNote note;
  };

  // Connects and sends its hello; tries again within the limit. Returns the signal that ended the
  // wait early, 0 when none did. A Comm error says why there is no connection.
  int join(const Options& options, const SignalQueue& signals);

  // REQUIRES of all below: joined.
  int descriptor() const override { return connection_->descriptor(); }
  void look() override;
  std::string end_wanted() const override;

  // Where this machine takes part in the next attempt, once.
  std::optional<NodeAssignment> take_place();
  // How its ranks ended.
  void report(const NodeEnd& end) { send(end); }
  // Set when the job has ended, or the first machine is gone.
  const std::optional<NodeJobEnd>& over() const { return over_; }

 private:
  void take(const NodeMessage& message);
  void send(const NodeMessage& message);
  void lose(const std::string& why);

  std::string there_;
  LaunchNote note_;
  std::unique_ptr<SecureConnection> connection_;
  std::optional<NodeAssignment> place_;
  std::optional<NodeJobEnd> over_;
  std::string stop_;
  std::chrono::steady_clock::time_point last_received_{}, next_heartbeat_{};
};

}  // namespace bev
