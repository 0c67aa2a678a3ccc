// Ranks as processes with a GPU each, which exchange tensors by NCCL. Usable in every build: where
// NCCL is absent, these functions say so.
#pragma once

#include <memory>
#include <string>

#include "comm/communicator.h"
#include "control/control.h"

namespace bev {

// Why NCCL cannot be used here, in a sentence; empty when it can.
std::string why_no_nccl();

// Sets what CUDA and NCCL read from the environment and is not set yet: the network interface to
// use (unless empty), and queues enough in the GPU that streams do not wait for each other. To be
// called before the device is made and before there are other threads.
void prepare_nccl_environment(const std::string& interface);

// The world of this process. All ranks call it together, each on the thread that made its device
// and will use the result. Device and control must outlive the result and what is split from it.
// Control is also called from a thread that looks for errors of NCCL: its blame() must be safe to
// call from there.
//
// `words` becomes a description: "NCCL 2.28.9, GPU 0000:18:00.0". A Usage error where two ranks
// share a GPU, a Comm error where NCCL cannot be used. `limit`: a call that lasts longer is blamed.
std::unique_ptr<Communicator> make_nccl_world(
    Device& device, Control& control, std::string& words,
    std::chrono::seconds limit = std::chrono::seconds(600));

}  // namespace bev
