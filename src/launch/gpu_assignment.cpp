#include "launch/gpu_assignment.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/format.h"

namespace bev {

namespace {

std::optional<int> number(const std::string& text) {
  int value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

// "GPU UUID:        GPU-1a2b..." in what the driver says about a GPU.
std::string uuid_in(const std::filesystem::path& information) {
  std::ifstream file(information);
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || line.substr(0, colon).find("UUID") == std::string::npos)
      continue;
    std::string uuid;
    std::istringstream(line.substr(colon + 1)) >> uuid;
    return uuid;
  }
  return {};
}

std::optional<int> node_in(const std::filesystem::path& path) {
  std::string text;
  std::ifstream(path) >> text;
  return number(text);
}

}  // namespace

std::vector<MachineGpu> machine_gpus(const std::filesystem::path& driver,
                                     const std::filesystem::path& pci) {
  std::vector<MachineGpu> gpus;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(driver, none)) {
    const std::string bus = entry.path().filename().string();
    gpus.push_back({.bus = bus,
                    .uuid = uuid_in(entry.path() / "information"),
                    .node = node_in(pci / bus / "numa_node")});
  }
  std::sort(gpus.begin(), gpus.end(),
            [](const MachineGpu& a, const MachineGpu& b) { return a.bus < b.bus; });
  return gpus;
}

std::vector<std::string> visible_gpus(const char* visible, size_t count) {
  std::vector<std::string> gpus;
  if (visible == nullptr) {
    for (size_t i = 0; i < count; ++i) gpus.push_back(format("{}", i));
  } else {
    std::istringstream rest(visible);
    for (std::string gpu; std::getline(rest, gpu, ',');) gpus.push_back(gpu);
  }
  return gpus;
}

const MachineGpu* find_gpu(const std::vector<MachineGpu>& gpus, const std::string& name) {
  if (const auto index = number(name)) {
    return static_cast<size_t>(*index) < gpus.size() ? &gpus[static_cast<size_t>(*index)] : nullptr;
  }
  const auto found = std::find_if(gpus.begin(), gpus.end(), [&](const MachineGpu& gpu) {
    return !name.empty() && gpu.uuid.starts_with(name);
  });
  return found == gpus.end() ? nullptr : &*found;
}

void take_own_gpu(RankEnvironment& environment) {
  const std::vector<MachineGpu> gpus =
      machine_gpus("/proc/driver/nvidia/gpus", "/sys/bus/pci/devices");
  const std::vector<std::string> visible =
      visible_gpus(std::getenv("CUDA_VISIBLE_DEVICES"), gpus.size());
  environment.local_gpus = static_cast<int>(visible.size());
  if (visible.empty()) return;
  const std::string& own = visible[static_cast<size_t>(environment.local_rank) % visible.size()];
  if (const MachineGpu* gpu = find_gpu(gpus, own)) environment.gpu_node = gpu->node;
  if (environment.local_size > 1 && visible.size() > 1)
    ::setenv("CUDA_VISIBLE_DEVICES", own.c_str(), 1);
}

}  // namespace bev
