// The command line of `bevatron launch`: the flags of torchrun.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "launch/rank_environment.h"
#include "launch/supervisor.h"

namespace bev::app {

// How many processes a machine gets where the command line does not say a number.
enum class ProcessKind : uint8_t { Number, Auto, Gpu, Cpu };

struct LaunchRequest {
  ProcessKind kind = ProcessKind::Number;
  int processes = 1;  // of this machine, for Number
  int nodes = 1, node = 0;
  int least_nodes = 1;  // of `nodes`; below it where their number may change
  std::string master_host;
  int master_port = 0;  // 0: a free one
  std::string job;
  int max_restarts = 0, max_idle_restarts = 3;
  std::chrono::milliseconds last_call{30'000}, join_timeout{600'000};
  std::string redirects, tee;  // as written, since they may name ranks
  std::string log_folder;
  std::vector<std::string> command;  // verb or program first
  std::vector<std::string> notes;    // flags that are accepted and change nothing

  bool only_checks() const;  // dry run of train: nothing is started
  bool is_elastic() const { return least_nodes < nodes; }
};

// Names of flags may be written with - and with _. They end at the first argument that is none, or
// behind "--". What is not given is taken from torchrun's variables (PET_NNODES, PET_NODE_RANK,
// ...) or, for the number of this machine, from what Slurm or mpirun says. Absent: --help was asked
// for and has been printed. All that is wrong is a Usage error.
std::optional<LaunchRequest> launch_request(std::span<const std::string> args,
                                            const Getenv& getenv);

// The value of --redirects and --tee, "3" or "0:3,1:0", for each of `count` ranks.
std::vector<int> streams_by_rank(const std::string& text, std::string_view flag, int count);

}  // namespace bev::app
