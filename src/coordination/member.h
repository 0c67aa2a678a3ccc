// A rank's end of its control connection.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "coordination/coordination_client.h"
#include "coordination/coordination_messages.h"
#include "coordination/coordination_server.h"
#include "coordination/heartbeat_monitor.h"
#include "coordination/rendezvous.h"
#include "net/secure_link.h"
#include "net/socket.h"

namespace bev {

// Callers send for themselves and wait; the watching thread receives, beats, and calls back without
// holding the lock.
class CoordinationClient::Member {
 public:
  explicit Member(Options options);
  ~Member();
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  int rank() const { return options_.rank; }
  int size() const { return options_.size; }
  const RankIdentity& place(int rank) const;

  std::vector<std::string> all_gather(const std::string& here);
  int64_t all_reduce_max(std::span<const int> ranks, int64_t here);
  void put(const std::string& key, const std::string& value);
  std::string get(const std::string& key);

  Activity& activity() { return activity_; }
  void report_times(const RankTimes& times);
  std::vector<RankTimes> times() const;

  void abort(const std::string& why);
  [[noreturn]] void fail_with(const std::string& what_happened);
  void finish();

 private:
  using Time = std::chrono::steady_clock::time_point;
  using Lock = std::unique_lock<std::mutex>;
  // A caller who waits for an answer.
  struct Waiter {
    std::condition_variable answered{};
    std::optional<Message> answer{};
  };

  void join();
  void note(const std::string& text) const;
  void note_of_first(const std::string& text) const;

  // With the lock held.
  void send(const Message& message);
  uint32_t number_of_group(std::span<const int> ranks);
  Message ask(Lock& lock, uint64_t request, const Message& message);
  bool is_ended() const { return failure_.has_value() || is_finished_; }

  // Of the watching thread.
  void watch();
  void watch_once();
  void receive();
  void beat(Time now);
  void check_heartbeats(Time now);
  void take(Message message);
  void answer(uint64_t request, Message message);
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
  uint64_t next_request_ = 0, next_exchange_ = kFirstExchange;
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
