// What the launcher of a job of many processes says in the environment.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace bev {

enum class LaunchedBy : uint8_t { Mpirun, Variables, Slurm };

// This process as its launcher numbers it.
struct RankEnvironment {
  LaunchedBy by{};
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;  // on this machine
  // Where the first rank listens; empty under mpirun, where MPI itself tells.
  std::string master_host;
  int master_port = 0;
  std::string job;  // the number of the job and of the restart: the same for all ranks
  std::string words;  // "RANK, WORLD_SIZE and MASTER_ADDR as torchrun sets them"
};

using Getenv = std::function<const char*(const char*)>;

// Absent: this process is alone. Variables that contradict each other or are no numbers are a Usage
// error that names them.
std::optional<RankEnvironment> rank_environment(const Getenv& getenv);

}  // namespace bev
