// Message handling of the coordination server, independent of sockets: barriers, keys, heartbeats,
// and the failure of a rank, which ends the job (rank_failure.cpp).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "coordination/coordination_messages.h"
#include "coordination/heartbeat_monitor.h"

namespace bev {

// The values of a job's KeyValueStore, and who waits for which.

class KeyValueTable {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Wait {
    int rank = 0;
    uint64_t request = 0;
    std::string key;
    Time since{};
  };

  explicit KeyValueTable(size_t bytes_most) : bytes_most_(bytes_most) {}

  // Why it is not taken; empty: it is.
  std::string put(const std::string& key, std::string value);
  const std::string* find(const std::string& key) const;

  void wait(Wait wait) { waits_.push_back(std::move(wait)); }
  // Those that wait for the key, or since before that time, wait no longer.
  std::vector<Wait> take_waits(const std::string& key);
  std::vector<Wait> take_waits_since(Time before);

 private:
  size_t bytes_most_, bytes_ = 0;
  std::map<std::string, std::string> values_;
  std::vector<Wait> waits_;
};

// Ranks that wait for each other, any number of times.

class Barrier {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Arrival {
    int rank = 0;
    uint64_t request = 0;
  };

  // REQUIRES: ascending.
  explicit Barrier(std::vector<int> ranks);

  const std::vector<int>& ranks() const { return ranks_; }
  // A Comm error when it is no member or is already there.
  void arrive(int rank, uint64_t request, Time now);
  bool is_complete() const { return arrived_ == ranks_.size(); }
  // When the first came, while somebody is there.
  std::optional<Time> since() const;
  std::vector<int> missing() const;
  // All who are there go, in ascending order of their ranks.
  std::vector<Arrival> disperse();

 private:
  std::vector<int> ranks_;
  std::vector<std::optional<uint64_t>> requests_;  // by member
  size_t arrived_ = 0;
  Time since_{};
};

class JobState {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Limits {
    std::chrono::milliseconds heartbeat, heartbeat_timeout, limit;
  };

  // `send` may not call back.
  JobState(const std::vector<RankIdentity>& places, const Limits& limits,
           std::function<void(int rank, Parcel parcel)> send);

  // A Comm error: no rank of this program says that.
  void take(int rank, CoordinationMessage message, Time now);
  // Any bytes of the rank have arrived.
  void received(int rank, Time now);
  // Its connection is no more.
  void lost(int rank, const std::string& why);
  // From time to time. `doing`: of the rank whose process this is.
  void tick(Time now, const std::string& doing);

  // A job whose end everybody has been told of, good or bad.
  bool is_over() const { return is_failed_ || is_finished_; }
  // From any thread.
  std::vector<RankTimes> times() const;

 private:
  struct Group {
    Barrier barrier;
    int64_t largest = 0;
    std::string broken{};  // why it can no longer be used
  };
  struct Member {
    RankIdentity place;
    HeartbeatMonitor heartbeat;
    std::string doing = "nothing that it told of";
    std::vector<Group*> groups{};  // as it numbers them
    bool is_finished = false, is_gone = false;
  };

  void take(int rank, const GroupMessage& message, Time now);
  void take(int rank, const AllReduceMaxMessage& message, Time now);
  void take(int rank, AllGatherMessage message, Time now);
  void take(int rank, PutMessage message, Time now);
  void take(int rank, const GetMessage& message, Time now);
  void take(int rank, const TimesMessage& message, Time now);
  void take(int rank, const AbandonMessage& message, Time now);
  void take(int rank, const FinishMessage& message, Time now);
  void take(int rank, HeartbeatMessage message, Time now);
  // What only the server says.
  template <class T>
  void take(int rank, const T& message, Time now);

  Member& member(int rank) { return members_[static_cast<size_t>(rank)]; }
  void send(int rank, const CoordinationMessage& message);
  void send_all(const CoordinationMessage& message);
  void deny(const Barrier::Arrival& who, const std::string& why, bool is_bug = false);
  void deny_all(Barrier& barrier, const std::string& why);
  void end_exchange();
  void declare(int rank, const std::string& doing, const std::string& why);
  void check_heartbeats(std::chrono::nanoseconds now);
  void look_for_waits(Time now);
  std::string overdue_text(const Barrier& barrier, const char* what) const;

  Limits limits_;
  std::function<void(int rank, Parcel parcel)> send_;
  std::vector<Member> members_;
  std::map<std::vector<int>, std::unique_ptr<Group>> groups_;
  Barrier exchange_;
  std::vector<std::string> exchanged_;  // by rank
  size_t exchanged_bytes_ = 0;
  std::string exchange_broken_;
  KeyValueTable keys_;
  AwakeClock awake_;
  std::optional<Time> next_heartbeat_;
  bool is_failed_ = false, is_finished_ = false;
  mutable std::mutex times_mutex_;
  std::vector<RankTimes> times_;
};

}  // namespace bev
