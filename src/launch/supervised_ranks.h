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
  bool was_asked = false;  // the launcher had asked it to end
  size_t order = 0;        // number of ranks that had ended before
};

class SupervisedRanks {
 public:
  // Starts the ranks. If one cannot be started, kills those that run.
  SupervisedRanks(const LaunchJob& job, int attempt, const sigset_t& signals);
  ~SupervisedRanks();
  SupervisedRanks(const SupervisedRanks&) = delete;
  SupervisedRanks& operator=(const SupervisedRanks&) = delete;

  bool all_ended() const { return ended_ == ranks_.size(); }
  // Whether a rank has ended otherwise than with exit code 0.
  bool one_failed() const;
  // Records the ranks that have exited. Does not wait.
  void collect();
  // Signals all running ranks and their children. is_ours: the launcher asks them to end, so that
  // their exit is not a failure.
  void send(int signal, bool is_ours);

  // Waits until a stream is ready, `signals` or `aside` (-1: none) is readable, or the time has
  // passed; relays output.
  void wait(int signals, int aside, int milliseconds);
  // Relays the last output of the ranks, for at most `limit`.
  void drain(std::chrono::milliseconds limit);

  // The local rank that failed first; a rank with exit code 5 (Comm error) only if no other failed.
  // Empty if none failed by itself.
  std::optional<size_t> culprit() const;
  const RankEnd& end_of(size_t local_rank) const { return *ranks_[local_rank].end; }
  pid_t process_of(size_t local_rank) const { return ranks_[local_rank].process; }
  // The last lines of its stderr, if known.
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
  // stdout or stderr of a rank.
  struct Stream {
    int descriptor = -1;
    Descriptor owner{};            // open if it must be closed after the rank has started
    std::filesystem::path file{};  // empty: none
  };
  Stream open_stream(size_t local_rank, int attempt, bool is_error);
  void stop_all();

  const LaunchJob& job_;
  int port_;
  RelayStream out_, err_;
  std::vector<Rank> ranks_;
  // stdout and stderr of each rank; absent if the stream is not relayed.
  std::vector<std::optional<OutputRelay>> relays_;
  size_t ended_ = 0;
};

// "SIGTERM".
std::string signal_name(int signal);

// "exit code 3 (data error)", "killed by signal 9 (SIGKILL)".
std::string exit_status_text(int status, bool is_own_program);

}  // namespace bev
