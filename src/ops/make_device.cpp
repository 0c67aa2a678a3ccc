#include "ops/make_device.h"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "base/check.h"
#include "base/integer.h"
#include "ops/cpu/kernels/kernels.h"
#include "ops/cuda/workspace.h"
#include "ops/op_table.h"

#ifdef BEV_HAS_CUDA
#include "ops/cuda/gpu.h"
#endif

namespace bev {

namespace {

int threads_for(DeviceKind kind, int64_t threads) {
  BEV_CHECK(threads >= 0, Usage, "{} threads asked for; 0 means all this process may use", threads);
  if (kind == DeviceKind::Reference) return 1;
  return threads > 0 ? narrow<int>(threads) : usable_threads();
}

// What a device allocates for its ops when it is made.
size_t workspace_total(DeviceKind kind, int threads) {
  switch (kind) {
    case DeviceKind::Cpu: return cpu::workspace_bytes() * static_cast<size_t>(threads);
    case DeviceKind::Cuda: return cuda::kGemmWorkspace;
    default: return 0;
  }
}

std::string cache_folder(const DeviceConfig& c) {
  if (c.cache == "off") return {};
  if (!c.cache.empty()) return c.cache;
  const auto under = [](const char* variable, const char* folder) -> std::string {
    const char* value = std::getenv(variable);
    return value == nullptr || *value != '/' ? "" : std::string(value) + folder;
  };
  const std::string chosen = under("XDG_CACHE_HOME", "/bevatron");
  return chosen.empty() ? under("HOME", "/.cache/bevatron") : chosen;
}

DevicePolicy policy_of(const DeviceConfig& c) {
  return {.deterministic = c.deterministic,
          .tf32 = c.tf32,
          .autotunes = c.autotune,
          .graphs = c.graphs,
          .cache = cache_folder(c)};
}

// MemAvailable of /proc/meminfo in bytes; 0 when it cannot be read.
size_t free_host_memory() {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  size_t kib = 0;
  while (file >> key >> kib >> unit) {
    if (key == "MemAvailable:") return kib * 1024;
  }
  return 0;
}

// Auto that load() did not decide: a configuration that was made by hand.
DeviceKind decided(DeviceKind kind) { return kind == DeviceKind::Auto ? DeviceKind::Cpu : kind; }

}  // namespace

int usable_threads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  // Fails on machines with more processors than a cpu_set_t holds.
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

int threads_of_rank(const Config& config) {
  if (config.device.threads > 0) return static_cast<int>(config.device.threads);
  return std::max(1, usable_threads() / static_cast<int>(config.parallel.ranks));
}

std::unique_ptr<Device> make_device(const DeviceConfig& config) {
  const DeviceKind kind = decided(config.kind);
  const int threads = threads_for(kind, config.threads);
  switch (kind) {
    case DeviceKind::Reference:
      return std::make_unique<HostDevice>(kind, kReferenceOps, threads, 0);
    case DeviceKind::Cpu:
      return std::make_unique<HostDevice>(kind, kCpuOps, threads, cpu::workspace_bytes());
    case DeviceKind::Cuda: {
      const std::string why = why_no_cuda();
      BEV_CHECK(why.empty(), Device,
                "the cuda device cannot be used: {}; `bevatron doctor` says what to do", why);
#ifdef BEV_HAS_CUDA
      return std::make_unique<cuda::Gpu>(policy_of(config));
#endif
    }
    case DeviceKind::Auto:
    case DeviceKind::Null: break;
  }
  throw Error(ErrorKind::Usage, "the null device computes nothing; it serves planning only");
}

std::unique_ptr<Device> make_device(DeviceKind kind, int threads) {
  DeviceConfig config;
  config.kind = kind;
  config.threads = threads;
  config.cache = "off";
  return make_device(config);
}

std::unique_ptr<Device> make_null_device(const DeviceConfig& imitates) {
  const DeviceKind kind = decided(imitates.kind);
  BEV_CHECK(kind != DeviceKind::Null, Internal, "a null device that imitates itself");
  return std::make_unique<NullDevice>(kind, kind == DeviceKind::Cuda ? kNullCudaOps : kNullOps,
                                      policy_of(imitates),
                                      workspace_total(kind, threads_for(kind, imitates.threads)));
}

std::unique_ptr<Device> make_null_device(DeviceKind imitates, int threads) {
  DeviceConfig config;
  config.kind = imitates;
  config.threads = threads;
  return make_null_device(config);
}

std::string why_no_cuda() {
#ifdef BEV_HAS_CUDA
  return cuda::why_no_gpu();
#else
  return "this build has no CUDA (it is built where nvcc is found)";
#endif
}

CudaInfo cuda_facts([[maybe_unused]] cuda::Depth depth) {
#ifdef BEV_HAS_CUDA
  return cuda::gpu_facts(depth);
#else
  return {};
#endif
}

std::string gpu_name() {
#ifdef BEV_HAS_CUDA
  return cuda::gpu_name(0);
#else
  return {};
#endif
}

DeviceKind automatic_device() { return why_no_cuda().empty() ? DeviceKind::Cuda : DeviceKind::Cpu; }

size_t free_memory(DeviceKind kind) {
#ifdef BEV_HAS_CUDA
  if (kind == DeviceKind::Cuda) return cuda::why_no_gpu().empty() ? cuda::free_gpu_memory() : 0;
#endif
  return kind == DeviceKind::Cuda ? 0 : free_host_memory();
}

}  // namespace bev
