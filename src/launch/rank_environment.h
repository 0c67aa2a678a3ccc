// Environment variables of a multi-process job: read by a rank, set by `bevatron launch`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace bev {

enum class LaunchedBy : uint8_t { Mpirun, Variables, Slurm };

// This process as its launcher numbers it.
struct RankEnvironment {
  LaunchedBy by{};
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;  // on this machine
  // Where the first rank listens; empty under mpirun, where MPI connects the ranks.
  std::string master_host{};
  int master_port = 0;
  std::string job{};     // the number of the job and of the restart: the same for all ranks
  int64_t restarts = 0;  // number of times that the job was started before
  // Set by rank_binding.h: number of GPUs that the ranks on this machine share, and the NUMA node
  // of this rank's GPU.
  int local_gpus = 0;
  std::optional<int> gpu_node{};
  std::string words{};  // "RANK, WORLD_SIZE and MASTER_ADDR as torchrun sets them"
};

using Getenv = std::function<const char*(const char*)>;

// The value of an environment variable; empty if it is not set.
inline std::string variable_text(const Getenv& getenv, const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? "" : value;
}

// Reads the variables of a launcher, in this order: mpirun of Open MPI, MPICH or Intel MPI; RANK
// and WORLD_SIZE (torchrun, a PyTorchJob of Kubernetes, a script); srun. RANK and WORLD_SIZE that
// contradict mpirun take precedence if MASTER_ADDR and MASTER_PORT are set too. MASTER_ADDR and
// MASTER_PORT take precedence over the values derived from Slurm's variables. The default port is
// 6000 for RANK and WORLD_SIZE, as in Megatron-LM's scripts; under srun it depends on job and step.
// If torchrun's agent listens on MASTER_PORT, the first rank takes the next port.
//
// Absent: this process is alone, or the only one of its job. Usage error that names the variables
// if they contradict each other or are not numbers.
std::optional<RankEnvironment> rank_environment(const Getenv& getenv);

// RankEnvironment::restarts, also for a single process: TORCHELASTIC_RESTART_COUNT, or
// BEVATRON_RESTART, plus SLURM_RESTART_COUNT, the number of times that the whole job was requeued.
int64_t restarts_of_job(const Getenv& getenv);

// The variables of this process as NAME=VALUE, without those that mpirun, torchrun and `launch` set
// for the processes they start.
std::vector<std::string> inherited_variables();
// The variables that `launch` sets for a rank. `node`: the number of its machine (GROUP_RANK).
std::vector<std::string> rank_variables(const RankEnvironment& rank, int node,
                                        const std::string& secret);

}  // namespace bev
