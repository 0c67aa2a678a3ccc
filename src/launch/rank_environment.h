// What the launcher of a job of many processes says in the environment: read by a rank, set by our
// launcher.
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
  // Where the first rank listens; empty under mpirun, where MPI itself tells.
  std::string master_host{};
  int master_port = 0;
  std::string job{};     // the number of the job and of the restart: the same for all ranks
  int64_t restarts = 0;  // how often the job has been started before this time
  // Of rank_binding.h: how many GPUs the ranks on this machine share out, the NUMA node of this
  // one's.
  int local_gpus = 0;
  std::optional<int> gpu_node{};
  std::string words{};  // "RANK, WORLD_SIZE and MASTER_ADDR as torchrun sets them"
};

using Getenv = std::function<const char*(const char*)>;

// The value of an environment variable; empty when it is not set.
inline std::string variable_text(const Getenv& getenv, const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? "" : value;
}

// In this order: what mpirun of Open MPI, MPICH or Intel MPI sets; RANK and WORLD_SIZE (torchrun, a
// PyTorchJob of Kubernetes, a script); what srun sets. RANK and WORLD_SIZE that say other numbers
// than mpirun win when MASTER_ADDR and MASTER_PORT are set too. MASTER_ADDR and MASTER_PORT win
// over what Slurm implies; without MASTER_PORT it is 6000, as in the scripts of Megatron-LM. Where
// the agent of torchrun listens on MASTER_PORT, the first rank takes the next port.
//
// Absent: this process is alone, or the only one of its job. Variables that contradict each other
// or are no numbers are a Usage error that names them.
std::optional<RankEnvironment> rank_environment(const Getenv& getenv);

// RankEnvironment::restarts, also of a process that is alone: TORCHELASTIC_RESTART_COUNT, or
// BEVATRON_RESTART, and SLURM_RESTART_COUNT, which counts how often the whole job was queued again.
int64_t restarts_of_job(const Getenv& getenv);

// The variables of this process as NAME=VALUE, without what launchers set for those they start.
std::vector<std::string> inherited_variables();
// What `launch` sets for a rank. node: GROUP_RANK, the number of its machine.
std::vector<std::string> rank_variables(const RankEnvironment& rank, int node,
                                        const std::string& secret);

}  // namespace bev
