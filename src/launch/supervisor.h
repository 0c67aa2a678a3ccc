// Starts the ranks of one machine, looks after them and says how they ended.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace bev {

// What happens to the two streams of a rank: bit 0 stdout, bit 1 stderr, as torchrun counts. A
// stream with neither is ours.
struct RankOutput {
  int redirect = 0;  // to a file only
  int tee = 0;       // to our stream, with the rank before every line, and to a file
};

struct LaunchJob {
  std::vector<std::string> command;  // the path of the program first
  bool is_own_program = false;       // whose exit codes have names
  int first_rank = 0, local_size = 1, size = 1, node = 0;
  std::string master_host;
  int master_port = 0;  // 0: a free one, another at each restart; for jobs of one machine
  std::string secret, job;
  int max_restarts = 0;
  std::vector<RankOutput> outputs;  // by local rank
  // attempt_0/3/stdout.log below it is that of rank 3; what is there is added to. Empty: no files.
  std::filesystem::path log_folder;

  // Streams of ours; others in tests.
  int out = 1, err = 2;
  using Duration = std::chrono::milliseconds;
  Duration until_asked{5000};      // others may end by themselves after one has failed
  Duration until_killed{5000};     // after they were asked to
  Duration until_insisting{2000};  // a further signal that comes later kills
  Duration first_backoff{1000}, longest_backoff{30000};
};

// Returns the exit code: 0, or that of the rank that failed first, 128 + N where signal N killed
// it. A rank that ends with the exit code of a Comm error has been let down by another, which is
// looked for first. SIGINT, SIGTERM, SIGHUP and SIGUSR1 are passed on to all ranks. When one has
// failed, the others get `until_asked`, then SIGTERM, then `until_killed`, then SIGKILL; all are
// started again up to `max_restarts` times, unless the command itself is wrong (exit codes 2, 126,
// 127) or a signal asked for the end. No rank outlives the calling thread.
//
// Gives what people should read to `note`, lines without the last end. REQUIRES: no other thread of
// this process waits for signals.
int supervise(const LaunchJob& job, const std::function<void(const std::string&)>& note);

// A port of this machine that nobody has at the moment.
int free_port();

}  // namespace bev
