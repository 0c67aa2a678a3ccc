#include "ops/make_device.h"

#include <sched.h>

#include <algorithm>
#include <thread>

#include "base/check.h"
#include "ops/cpu/workspace.h"
#include "ops/op_table.h"

namespace bev {

namespace {

int threads_for(DeviceKind kind, int threads) {
  BEV_CHECK(threads >= 0, Usage, "{} threads asked for; 0 means all this process may use", threads);
  if (kind == DeviceKind::Reference) return 1;
  return threads > 0 ? threads : usable_threads();
}

size_t workspace_for(DeviceKind kind) {
  return kind == DeviceKind::Cpu ? cpu::workspace_bytes() : 0;
}

}  // namespace

int usable_threads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  // Fails on machines with more processors than a cpu_set_t holds.
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::unique_ptr<Device> make_device(DeviceKind kind, int threads) {
  switch (kind) {
    case DeviceKind::Reference:
      return std::make_unique<HostDevice>(kind, kReferenceOps, threads_for(kind, threads),
                                          workspace_for(kind));
    case DeviceKind::Cpu:
      return std::make_unique<HostDevice>(kind, kCpuOps, threads_for(kind, threads),
                                          workspace_for(kind));
    case DeviceKind::Cuda: throw Error(ErrorKind::Usage, "this build has no CUDA");
    case DeviceKind::Null: break;
  }
  throw Error(ErrorKind::Usage, "the null device computes nothing; it serves planning only");
}

std::unique_ptr<Device> make_null_device(DeviceKind imitates, int threads) {
  BEV_CHECK(imitates != DeviceKind::Null, Internal, "a null device that imitates itself");
  const auto count = static_cast<size_t>(threads_for(imitates, threads));
  return std::make_unique<NullDevice>(imitates, kNullOps, count * workspace_for(imitates));
}

}  // namespace bev
