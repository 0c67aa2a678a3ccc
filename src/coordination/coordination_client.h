// The control connection of one rank of a job of many processes: who is there, small agreements,
// heartbeats, and the news that a rank has failed. Tensors go another way (comm/).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/activity.h"
#include "coordination/key_value_store.h"
#include "net/socket.h"

namespace bev {

// A rank as messages name it.
struct RankIdentity {
  int rank = -1;
  std::string host;
  int64_t pid = 0;
};

struct Failure {
  RankIdentity who;
  std::string doing;  // what it was doing, as far as known
  std::string why;    // its own words, or how the others noticed
  // "rank 3 (host b, pid 4711) is gone: its connection closed while all_reduce of 4.2 MB with ranks
  // 1, 3, step 17"
  std::string text() const;
};

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

  int rank() const;
  int size() const;
  const RankIdentity& place(int rank) const;

  // All ranks together, in the same order. What each brings, by rank.
  std::vector<std::string> all_gather(const std::string& here);
  // The named ranks together, in the same order. `ranks` ascending, this one among them.
  int64_t all_reduce_max(std::span<const int> ranks, int64_t here);
  void barrier(std::span<const int> ranks) { all_reduce_max(ranks, 0); }

  void put(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key) override;

  Activity& activity();
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
  class Member;
  std::unique_ptr<Member> member_;
};

}  // namespace bev
