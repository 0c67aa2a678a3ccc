// The control connection of one rank of a job of many processes: who is there, small agreements,
// heartbeats, and the news that a rank has failed. Tensors go another way (comm/).
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

// Callers send for themselves and wait; a thread receives, sends heartbeats, and calls back without
// holding the lock.
class CoordinationClient final : public KeyValueStore {
 public:
  struct Options {
    int rank = 0, size = 1;
    std::string host;  // of the first rank, as it is reached from here
    int port = 0;
    std::optional<ListenPort> listener;  // of the first rank
    std::string secret;                  // of the job; who has another is not let in
    std::string job;       // what else must be the same, such as the number of a restart
    std::string own_host;  // as others read it in messages
    std::chrono::milliseconds join_limit{std::chrono::minutes(10)};
    std::chrono::milliseconds heartbeat{1000};
    std::chrono::milliseconds heartbeat_timeout{std::chrono::seconds(30)};  // then the silent one
                                                                            // is named
    std::chrono::milliseconds limit{std::chrono::minutes(10)};  // then the job is stopped
    // Something people should read; from any thread, one line without its end.
    std::function<void(const std::string&)> log;
    // The same, of the first rank, which may not be able to say it: called on the second. Empty:
    // note.
    std::function<void(const std::string&)> note_of_first;
    // A rank has failed. Called once, from the thread that watches, while the one that trains may
    // be stuck in a collective: it is expected to say so and end the process.
    std::function<void(const Failure&)> on_failure;
  };

  // The first rank serves; every rank, the first too, connects. Returns when all have joined. A
  // Comm error names the ranks that have not within join_limit. While it waits, note() says from
  // time to time for whom.
  explicit CoordinationClient(Options options);
  // Without finish(): the others are told that this rank left early.
  ~CoordinationClient() override;

  int rank() const { return options_.rank; }
  int size() const { return options_.size; }
  const RankIdentity& place(int rank) const;

  // All ranks together, in the same order. What each brings, by rank.
  std::vector<std::string> all_gather(const std::string& here);
  // The named ranks together, in the same order. `ranks` ascending, this one among them.
  int64_t all_reduce_max(std::span<const int> ranks, int64_t here);
  void barrier(std::span<const int> ranks) { all_reduce_max(ranks, 0); }

  void put(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key) override;

  Activity& activity() { return activity_; }
  // Told to the first rank, without waiting.
  void report_times(const RankTimes& times);
  // The latest of every rank, by rank. REQUIRES: rank() == 0.
  std::vector<RankTimes> times() const;

  // This rank cannot go on: the others are told why. Returns when the news is on its way.
  void abort(const std::string& why);
  // A library says that an exchange has failed, which may be because of a rank that is gone: gives
  // that news a moment to arrive (on_failure then ends the process), and else abandons and throws a
  // Comm error with these words.
  [[noreturn]] void fail_with(const std::string& what_happened);
  // This rank has done its work. Returns when all have, or one has failed, or `limit` has passed.
  void finish();

 private:
  using Time = std::chrono::steady_clock::time_point;
  using Lock = std::unique_lock<std::mutex>;
  // A caller who waits for an answer.
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

  // Of the watching thread.
  void watch();
  void watch_once();
  void receive();
  void beat(Time now);
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
  std::condition_variable changed_;  // the two below
  std::optional<Failure> failure_;   // of which on_failure() has been told
  bool is_finished_ = false;         // all have
  bool has_abandoned_ = false, has_finished_ = false;
  bool is_stopping_ = false;
  bool wants_out_ = false;  // the watching thread is to write the rest
  uint64_t next_request_ = 0, next_exchange_;
  std::map<uint64_t, Waiter*> waiters_;
  std::map<std::vector<int>, uint32_t> groups_;

  // Its sending half is under the lock; its receiving half belongs to the watching thread, as all
  // below does.
  std::unique_ptr<SecureConnection> connection_;
  std::vector<std::string> early_messages_;
  bool is_reading_ = true;
  bool has_failed_ = false;
  bool said_all_ = false;
  std::string doing_of_first_ = "nothing that it told of";
  AwakeClock awake_;
  HeartbeatMonitor silence_;
  Time next_beat_{};
  std::thread thread_;
};

}  // namespace bev
