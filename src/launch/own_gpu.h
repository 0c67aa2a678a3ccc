// Which GPU a process takes: one each.
#pragma once

#include <string>

#include "launch/environment.h"

namespace bev {

// Where a launcher started several processes on this machine and each of them sees several GPUs,
// this one sees its own alone from now on (CUDA_VISIBLE_DEVICES). REQUIRES: nothing has used CUDA
// yet, and this process has one thread. Returns the number of the GPU; empty where nothing changed.
std::string take_own_gpu(const RankEnvironment& environment);

// The GPU of a local rank: `visible` is CUDA_VISIBLE_DEVICES (empty: not set), `count` the GPUs of
// the machine. Empty: there is nothing to choose from.
std::string own_gpu(int local_rank, const std::string& visible, int count);

}  // namespace bev
