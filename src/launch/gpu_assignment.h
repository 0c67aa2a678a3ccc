// Which GPU a process takes: one each.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "launch/rank_environment.h"

namespace bev {

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
void take_own_gpu(RankEnvironment& environment);

}  // namespace bev
