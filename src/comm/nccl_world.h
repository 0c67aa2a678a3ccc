// Ranks as processes with a GPU each, which exchange tensors by NCCL. Usable in every build: where
// NCCL is absent, these functions say so.
#pragma once

#include <memory>
#include <string>

#include "comm/communicator.h"
#include "coordination/coordination_client.h"

namespace bev {

// Why NCCL cannot be used here, in a sentence; empty when it can.
std::string why_no_nccl();

// Both set what libraries read from the environment, unless it is set, and are called before there
// are other threads. The network interface that NCCL is to use:
void choose_nccl_interface(const std::string& name);
// Queues enough in the GPU that streams do not wait for each other: before anything uses CUDA. They
// take time to make: 0.4 s more in a process that has its GPU alone, 1 s for every process where
// several share one, so not there.
void widen_gpu_queues();

// The world of this process. All ranks call it together, each on the thread that made its device
// and will use the result. Device and control must outlive the result and what is split from it.
// A thread that looks for errors of NCCL calls fail_with() of `control`.
//
// `words` becomes a description: "NCCL 2.28.9, GPU 0000:18:00.0". A Usage error where two ranks
// share a GPU, a Comm error where NCCL cannot be used. A call that lasts longer than `limit` fails.
std::unique_ptr<Communicator> make_nccl_world(
    Device& device, CoordinationClient& control, std::string& words,
    std::chrono::seconds limit = std::chrono::seconds(600));

// Whether the ranks of `world` exchange tensors by NCCL.
bool is_nccl(const Communicator& world);
// all_reduce as a program that only calls NCCL would do it: the same call on the same communicator
// and stream, without what stands in front of it. Ours is compared with it (bench comm). REQUIRES:
// is_nccl(world).
void nccl_sum(Communicator& world, Exec& ex, Tensor inout);

}  // namespace bev
