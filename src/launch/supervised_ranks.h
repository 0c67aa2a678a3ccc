// The ranks of one attempt while they run.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "launch/launch_job.h"
#include "launch/output_relay.h"

namespace bev {

struct RankEnd {
  int status = 0;          // as waitpid(2) gives it
  bool was_asked = false;  // a signal of ours came first
  size_t order = 0;        // how many had ended before
};

class SupervisedRanks {
 public:
  // Starts them. Those that run are killed when one cannot be started.
  SupervisedRanks(const LaunchJob& job, int attempt, const sigset_t& signals);
  ~SupervisedRanks();
  SupervisedRanks(const SupervisedRanks&) = delete;
  SupervisedRanks& operator=(const SupervisedRanks&) = delete;

  bool all_ended() const { return ended_ == ranks_.size(); }
  // Whether one has ended otherwise than with exit code 0.
  bool one_failed() const;
  // Notices which have ended. Does not wait.
  void collect();
  // To all that run, and what they have started. `is_ours`: how they end now is no news.
  void send(int signal, bool is_ours);

  // Waits until a stream has something, one of two descriptors can be read (-1: there is none), or
  // the time has passed; moves output.
  void wait(int signals, int aside, int milliseconds);
  // Brings what the ranks wrote last to where it belongs, within a time.
  void drain(std::chrono::milliseconds limit);

  // The local rank that failed first; empty when none did by itself.
  std::optional<size_t> culprit() const;
  const RankEnd& end_of(size_t local_rank) const { return *ranks_[local_rank].end; }
  pid_t process_of(size_t local_rank) const { return ranks_[local_rank].process; }
  // What it wrote to stderr last, as far as known.
  std::vector<std::string> last_words(size_t local_rank) const;

 private:
  struct Rank {
    pid_t process = -1;
    std::optional<RankEnd> end{};
    bool was_asked = false;
    std::filesystem::path error_file{};
  };

  void start(size_t local_rank, int attempt, const sigset_t& signals,
             const std::vector<std::string>& inherited);
  // What a rank gets as one of its streams.
  struct Stream {
    int descriptor = -1;
    Descriptor owner{};            // open where it is to be closed here afterwards
    std::filesystem::path file{};  // empty: none
  };
  Stream open_stream(size_t local_rank, int attempt, bool is_error);
  void stop_all();

  const LaunchJob& job_;
  int port_;
  RelayStream out_, err_;
  std::vector<Rank> ranks_;
  // Two for each rank, absent where its stream is not relayed.
  std::vector<std::optional<OutputRelay>> relays_;
  size_t ended_ = 0;
};

// "SIGTERM".
std::string signal_name(int signal);

// "exit code 3 (data error)", "killed by signal 9 (SIGKILL)".
std::string exit_status_text(int status, bool is_own_program);

}  // namespace bev
