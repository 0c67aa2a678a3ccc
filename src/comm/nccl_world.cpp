#include "comm/nccl_world.h"

#include <cstdlib>

#include "base/check.h"

#ifdef BEV_HAS_NCCL
#include "comm/cuda/nccl.h"
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
  return "this program was built without NCCL (it is built in where nvcc and nccl.h are found)";
#endif
}

void prepare_nccl_environment(const std::string& interface) {
  constexpr int kKeep = 0;
  // By itself NCCL takes a name for the beginning of names.
  if (!interface.empty()) ::setenv("NCCL_SOCKET_IFNAME", ("=" + interface).c_str(), kKeep);
  // By default streams share 8 queues. Work behind a send that waits for its receiver would wait
  // with it, though it is on another stream.
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", kKeep);
}

std::unique_ptr<Communicator> make_nccl_world([[maybe_unused]] Device& device,
                                              [[maybe_unused]] Control& control,
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

}  // namespace bev
