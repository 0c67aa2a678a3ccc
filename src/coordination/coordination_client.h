// Control connection of one rank of a multi-process job: rendezvous, small collectives on the host,
// heartbeats and failure reports. Tensors use other connections (comm/).
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/activity.h"
#include "coordination/heartbeat_monitor.h"
#include "coordination/key_value_store.h"
#include "coordination/rank_text.h"
#include "net/socket.h"

namespace bev {

class CoordinationServer;
struct CoordinationMessage;
class SecureConnection;

// Callers send on their own thread and wait for the answer. A watching thread receives, sends
// heartbeats, and calls back without holding the lock.
class CoordinationClient final : public KeyValueStore {
 public:
  struct Options {
    int rank = 0, size = 1;
    std::string host;  // address of the first rank, as seen from here
    int port = 0;
    std::optional<ListenPort> listener;  // of the first rank
    std::string secret;                  // the job's secret; ranks with another one are rejected
    std::string job;                     // must be equal on all ranks; includes the restart number
    std::string own_host;                // this rank's host name in messages of other ranks
    std::chrono::milliseconds join_limit{std::chrono::minutes(10)};
    std::chrono::milliseconds heartbeat{1000};
    // After heartbeat_timeout without a heartbeat a warning names the rank; after `limit` the job
    // is stopped.
    std::chrono::milliseconds heartbeat_timeout{std::chrono::seconds(30)};
    std::chrono::milliseconds limit{std::chrono::minutes(10)};
    // Logs a message for the user: one line without its newline. Called from any thread.
    std::function<void(const std::string&)> log;
    // Logs a message about rank 0, which may be unable to print it itself. Called on rank 1; the
    // other ranks call `log`. Empty: `log`.
    std::function<void(const std::string&)> note_of_first;
    // Called once, from the watching thread, when a rank has failed. The training thread may hang
    // in a collective: the callback is expected to report the failure and end the process.
    std::function<void(const Failure&)> on_failure;
  };

  // The first rank runs the server; every rank, including the first, connects to it. Returns when
  // all ranks have joined. A Comm error names the ranks that have not joined within join_limit.
  // While it waits, it logs the missing ranks from time to time.
  explicit CoordinationClient(Options options);
  // Without finish(), the other ranks are notified that this rank left early.
  ~CoordinationClient() override;

  int rank() const { return options_.rank; }
  int size() const { return options_.size; }
  const RankIdentity& place(int rank) const;

  // Returns the value of every rank, by rank. Collective over all ranks, in the same order.
  std::vector<std::string> all_gather(const std::string& here);
  // Collective over `ranks`, in the same order. `ranks` is ascending and includes this rank.
  int64_t all_reduce_max(std::span<const int> ranks, int64_t here);
  void barrier(std::span<const int> ranks) { all_reduce_max(ranks, 0); }

  void put(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key) override;

  Activity& activity() { return activity_; }
  // Sends the times to the first rank, without waiting.
  void report_times(const RankTimes& times);
  // The latest times of every rank, by rank. REQUIRES: rank() == 0.
  std::vector<RankTimes> times() const;

  // Fails this rank and sends `why` to the others. Returns when the server has announced the
  // failure, or after 2 s.
  void abort(const std::string& why);
  // A communication library has reported an error, perhaps because a rank was lost. Waits a moment
  // for the server to report that rank (on_failure then ends the process); else calls abort().
  // Throws a Comm error with `what_happened`.
  [[noreturn]] void fail_with(const std::string& what_happened);
  // Reports that this rank has finished. Returns when all ranks have finished, one has failed, or
  // `limit` has passed.
  void finish();

 private:
  using Time = std::chrono::steady_clock::time_point;
  using Lock = std::unique_lock<std::mutex>;
  // A caller that waits for an answer.
  struct Waiter {
    std::condition_variable answered{};
    std::unique_ptr<CoordinationMessage> answer{};
  };

  void join();
  void note_of_first(const std::string& text) const;

  // With the lock held.
  void send(const CoordinationMessage& message);
  uint32_t number_of_group(std::span<const int> ranks);
  CoordinationMessage ask(Lock& lock, uint64_t request, const CoordinationMessage& message);
  bool is_ended() const { return failure_.has_value() || is_finished_; }

  // Called by the watching thread.
  void watch();
  void watch_once();
  void receive();
  void send_heartbeat(Time now);
  void check_heartbeats(Time now);
  void take(CoordinationMessage message);
  void answer(uint64_t request, CoordinationMessage message);
  void fail(const Failure& failure);
  void close_sending();

  Options options_;
  Activity activity_;
  std::unique_ptr<CoordinationServer> server_;  // of the first rank
  std::vector<RankIdentity> places_;
  EventFd wake_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;  // notified when failure_ or is_finished_ is set
  std::optional<Failure> failure_;   // set after on_failure() has returned
  bool is_finished_ = false;         // all ranks have finished
  bool has_abandoned_ = false, has_finished_ = false;
  bool is_stopping_ = false;
  bool wants_out_ = false;  // the watching thread writes the rest
  uint64_t next_request_ = 0, next_exchange_;
  std::map<uint64_t, Waiter*> waiters_;
  std::map<std::vector<int>, uint32_t> groups_;

  // The lock guards the sending half. The receiving half belongs to the watching thread, as do all
  // members below.
  std::unique_ptr<SecureConnection> connection_;
  std::vector<std::string> early_messages_;
  bool is_reading_ = true;
  bool has_failed_ = false;
  bool sent_all_ = false;
  std::string doing_of_first_ = "nothing that it told of";
  AwakeClock awake_;
  HeartbeatMonitor heartbeat_monitor_;
  Time next_heartbeat_{};
  std::thread thread_;
};

}  // namespace bev
