// What `bevatron launch` is asked to start on one machine.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace bev {

// What happens to the two streams of a rank: bit 0 stdout, bit 1 stderr, as torchrun counts. A
// stream with neither is ours.
struct RankOutput {
  int redirect = 0;  // to a file only
  int tee = 0;       // to our stream, with the rank before every line, and to a file
};

// How far the work has come that would not be done again.
struct ProgressWatch {
  // The iteration of the newest checkpoint, 0 where there is none yet; nothing where that cannot be
  // known now. Empty: it never can.
  std::function<std::optional<int64_t>()> newest{};
  std::string folder{};  // of the checkpoints
  std::string logs{};    // where ranks write what they said; empty: nowhere
};

struct LaunchJob {
  std::vector<std::string> command;  // the path of the program first
  bool is_own_program = false;       // whose exit codes have names
  int first_rank = 0, local_size = 1, size = 1, node = 0;
  std::string master_host;
  int master_port = 0;  // 0: a free one, another at each restart; for jobs of one machine
  std::string secret, job;
  int max_restarts = 0;
  int max_idle_restarts = 3;  // attempts in a row without a new checkpoint; 0: any number
  ProgressWatch progress{};
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

}  // namespace bev
