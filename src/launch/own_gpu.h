// Which GPU a process takes: one each.
#pragma once

#include <string>
#include <vector>

#include "launch/environment.h"

namespace bev {

// Where a launcher started several processes on this machine and each of them sees several GPUs,
// this one sees its own alone from now on (CUDA_VISIBLE_DEVICES). REQUIRES: nothing has used CUDA
// yet, and this process has one thread. Sets environment.local_gpus.
void take_own_gpu(RankEnvironment& environment);

// The GPUs that a process may choose from: `visible` is CUDA_VISIBLE_DEVICES, null where it is not
// set, `count` how many the machine has.
std::vector<std::string> visible_gpus(const char* visible, int count);

}  // namespace bev
