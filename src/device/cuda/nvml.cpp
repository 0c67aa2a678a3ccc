#include "device/cuda/nvml.h"

#include <unistd.h>

#include <array>

#include "base/format.h"
#include "base/system_file.h"

namespace bev::cuda {

namespace {

constexpr int kSuccess = 0;
constexpr int kClockSm = 1, kClockMemory = 2;
constexpr unsigned kTextBytes = 96;  // more than any version text has

// nvmlMemory_t and nvmlProcessInfo_v2_t.
struct Memory {
  unsigned long long total, free, used;
};
struct Process {
  unsigned id;
  unsigned long long bytes;
  unsigned gpu_instance, compute_instance;
};
constexpr unsigned long long kUnknownBytes = ~0ull;

}  // namespace

template <class... Args>
bool Nvml::call(const char* name, Args... args) const {
  const auto function = reinterpret_cast<int (*)(Args...)>(library_.find(name));
  return function != nullptr && function(args...) == kSuccess;
}

Nvml::Nvml(LibraryInfo& facts) : library_(CudaLibrary::open({"libnvidia-ml.so.1"}, facts.why)) {
  if (!library_.loaded()) return;
  facts.path = library_.path();
  const auto start = reinterpret_cast<int (*)()>(library_.find("nvmlInit_v2"));
  const int status = start == nullptr ? -1 : start();
  started_ = status == kSuccess;
  if (started_) {
    std::array<char, kTextBytes> text{};
    if (call("nvmlSystemGetNVMLVersion", text.data(), kTextBytes)) facts.version = text.data();
    return;
  }
  const auto reason = reinterpret_cast<const char* (*)(int)>(library_.find("nvmlErrorString"));
  facts.why = reason == nullptr ? format("error {}", status) : std::string(reason(status));
}

Nvml::~Nvml() {
  if (started_) call("nvmlShutdown");
}

std::string Nvml::driver_version() const {
  std::array<char, kTextBytes> text{};
  const bool known = started_ && call("nvmlSystemGetDriverVersion", text.data(), kTextBytes);
  return known ? text.data() : "";
}

int Nvml::gpu_count() const {
  unsigned count = 0;
  return started_ && call("nvmlDeviceGetCount_v2", &count) ? static_cast<int>(count) : 0;
}

std::vector<GpuProcess> Nvml::processes(GpuHandle gpu) const {
  std::array<Process, 64> found{};
  auto count = static_cast<unsigned>(found.size());
  if (!call("nvmlDeviceGetComputeRunningProcesses_v3", gpu, &count, found.data())) return {};
  std::vector<GpuProcess> result;
  for (unsigned i = 0; i < count; ++i) {
    const Process& p = found[i];
    if (p.id == static_cast<unsigned>(::getpid())) continue;
    result.push_back({.id = p.id,
                      .name = system_line(format("/proc/{}/comm", p.id)),
                      .bytes = p.bytes == kUnknownBytes ? 0 : static_cast<int64_t>(p.bytes)});
  }
  return result;
}

void Nvml::describe(const std::string& bus_id, GpuInfo& gpu) const {
  GpuHandle handle = nullptr;
  if (!started_ || !call("nvmlDeviceGetHandleByPciBusId_v2", bus_id.c_str(), &handle)) return;
  Memory memory{};
  if (call("nvmlDeviceGetMemoryInfo", handle, &memory)) {
    gpu.memory_free = static_cast<int64_t>(memory.free);
  }
  unsigned clock = 0;
  if (call("nvmlDeviceGetClockInfo", handle, kClockSm, &clock))
    gpu.clock_mhz = static_cast<int>(clock);
  if (call("nvmlDeviceGetMaxClockInfo", handle, kClockSm, &clock)) {
    gpu.max_clock_mhz = static_cast<int>(clock);
  }
  if (call("nvmlDeviceGetClockInfo", handle, kClockMemory, &clock)) {
    gpu.memory_clock_mhz = static_cast<int>(clock);
  }
  int now = 0, after_restart = 0;
  if (call("nvmlDeviceGetEccMode", handle, &now, &after_restart)) gpu.ecc = now != 0;
  if (call("nvmlDeviceGetPersistenceMode", handle, &now)) gpu.persistence = now != 0;
  gpu.processes = processes(handle);
}

}  // namespace bev::cuda
