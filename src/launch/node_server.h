// The server of the first machine's launcher: admits the launchers of the other machines, sends
// them their part in each attempt, and collects how their ranks end.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "launch/node_messages.h"
#include "launch/supervisor.h"
#include "net/peer_server.h"

namespace bev {

class NodeServer final : public PollSource, private PeerServer {
 public:
  struct Options {
    std::string host;  // of this machine, as the others reach it
    int port = 0;
    std::string secret;  // launchers with another one are rejected
    NodeHello own;       // the job of the others must be the same
    LaunchNote note;
  };

  // Listens from now on. A Comm error says why it cannot.
  explicit NodeServer(Options options);

  int descriptor() const override { return epoll_descriptor(); }
  void look() override { serve(std::chrono::milliseconds(0)); }
  // Why an attempt cannot go on: a machine that takes part has failed or is gone.
  std::string end_wanted() const override { return failure_; }

  // Machines that take part in nothing now, by number.
  std::vector<NodeHello> waiting() const;
  // An attempt begins, with these; places by number of the machine.
  void start(const std::map<int, NodeAssignment>& places);
  // The attempt has failed: notifies the machines that still take part, once.
  void stop(const std::string& why);
  // Whether nobody but the first machine takes part any more.
  bool all_ended() const { return running_.empty(); }
  // Machines that have not reported how their ranks ended count as lost.
  void drop_unresponsive();
  // How the attempt ended elsewhere, by number of the machine.
  const std::map<int, NodeEnd>& ends() const { return ends_; }
  // "machine 2 (host b)"
  std::string name_of(int number) const;

  // Prints lines at all machines that are here.
  void notify(const std::string& text);
  // Ends the job everywhere; returns when all have received it, or soon.
  void end_job(const NodeJobEnd& over);

 private:
  void take(Peer& peer, const std::string& bytes, Time now) override;
  void lost(const Peer& peer) override;
  void tick(Time now) override;

  void greet(Peer& peer, const NodeHello& hello);
  std::string objection(const NodeHello& hello) const;
  void ended(int number, const NodeEnd& end);
  Peer* peer_of(int number) const;

  Options options_;
  std::map<int, NodeHello> hellos_;  // of all that ever came, by number
  std::map<int, uint64_t> running_;  // which connection takes part, by number
  std::map<int, NodeEnd> ends_;
  std::string failure_;
  bool is_stopped_ = false;
  Time next_heartbeat_{};
};

}  // namespace bev
