// CPU binding of ranks, and the GPU that each rank uses.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/cpu_topology.h"
#include "launch/rank_environment.h"

namespace bev {

// What a rank tells the others of its machine: the CPUs it was given, and the NUMA node of its GPU
// where it has one that says. One line, for binding_of alone to read.
std::string binding_offer(std::span<const int> cpus, std::optional<int> gpu_node);

struct Binding {
  std::vector<int> cpus;  // empty: as it is
  std::string words;      // "rank 0: CPUs 0-7 of NUMA node 0 (8 threads)"
};

// `offers` of all ranks of this machine, in the order of local ranks; all of them then decide
// alike. `rank` is for the words only.
//
// CPUs that differ and do not overlap are the work of a launcher and stay, as do those of one rank
// alone. CPUs that are the same are divided evenly: whole cores where there are enough, node by
// node; where every rank has a GPU whose node has CPUs, among the ranks of each node. With more
// ranks than CPUs nobody is bound.
Binding binding_of(int rank, int local_rank, std::span<const std::string> offers,
                   std::span<const Cpu> topology);

// binding_of on this machine, done: the calling thread runs there from now on, and so do threads
// that it starts later, but not those that exist. BEVATRON_BIND=none leaves all as it is; a value
// other than none and auto is a Usage error. What the system refuses is said in the words.
Binding bind_rank(int rank, int local_rank, std::span<const std::string> offers,
                  const Getenv& getenv);

// Which GPU a process takes: one each.

// A GPU as the driver lists it; asking CUDA would fix what this process sees.
struct MachineGpu {
  std::string bus, uuid;
  std::optional<int> node;  // of NUMA, where the system says
};

// In the order of their places on the bus, which is CUDA's for GPUs of one kind.
std::vector<MachineGpu> machine_gpus(const std::filesystem::path& driver,
                                     const std::filesystem::path& pci);

// The GPUs that a process may choose from: `visible` is CUDA_VISIBLE_DEVICES, null where it is not
// set, `count` how many the machine has.
std::vector<std::string> visible_gpus(const char* visible, size_t count);

// The one that CUDA_VISIBLE_DEVICES names: by number, or by the beginning of its UUID. Null: none.
const MachineGpu* find_gpu(const std::vector<MachineGpu>& gpus, const std::string& name);

// Where a launcher started several processes on this machine and each of them sees several GPUs,
// this one sees its own alone from now on (CUDA_VISIBLE_DEVICES). REQUIRES: nothing has used CUDA
// yet, and this process has one thread. Sets environment.local_gpus and gpu_node.
void assign_gpu(RankEnvironment& environment);

}  // namespace bev
