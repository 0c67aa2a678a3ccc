#include "comm/nccl_world.h"

#include <cstdlib>

#include "base/check.h"

#ifdef BEV_HAS_NCCL
#include "comm/cuda/nccl_communicator.h"
#include "comm/cuda/nccl_library.h"
#endif

namespace bev {

std::string why_no_nccl() {
#ifdef BEV_HAS_NCCL
  try {
    const cuda::NcclLibrary library;
  } catch (const Error& error) {
    return error.what();
  }
  return {};
#else
  return "this program was built without NCCL (it is built in where nvcc and nccl_communicator.h "
         "are found)";
#endif
}

namespace {
constexpr int kKeep = 0;
}

void choose_nccl_interface(const std::string& name) {
  // By itself NCCL takes a name for the beginning of names.
  ::setenv("NCCL_SOCKET_IFNAME", ("=" + name).c_str(), kKeep);
}

void widen_gpu_queues() {
  // By default streams share 8 queues. Work behind a send that waits for its receiver would wait
  // with it, though it is on another stream.
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", kKeep);
}

std::unique_ptr<Communicator> make_nccl_world([[maybe_unused]] Device& device,
                                              [[maybe_unused]] CoordinationClient& control,
                                              [[maybe_unused]] std::string& words,
                                              [[maybe_unused]] std::chrono::seconds limit) {
#ifdef BEV_HAS_NCCL
  BEV_CHECK(device.kind() == DeviceKind::Cuda, Usage,
            "NCCL moves tensors among GPUs, and this rank's device is none; device.kind cuda is");
  return cuda::make_nccl_world(static_cast<CudaDevice&>(device), control, words, limit);
#else
  throw Error(ErrorKind::Comm, format("ranks cannot exchange tensors by NCCL: {}", why_no_nccl()));
#endif
}

bool is_nccl([[maybe_unused]] const Communicator& world) {
#ifdef BEV_HAS_NCCL
  return dynamic_cast<const cuda::NcclCommunicator*>(&world) != nullptr;
#else
  return false;
#endif
}

void nccl_sum([[maybe_unused]] Communicator& world, [[maybe_unused]] Exec& ex,
              [[maybe_unused]] Tensor inout) {
  BEV_CHECK(is_nccl(world), Internal, "a sum by NCCL among ranks that do not use it");
#ifdef BEV_HAS_NCCL
  static_cast<cuda::NcclCommunicator&>(world).library_sum(ex, inout);
#endif
}

}  // namespace bev
