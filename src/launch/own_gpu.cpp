#include "launch/own_gpu.h"

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <vector>

#include "base/format.h"

namespace bev {

namespace {

// As the driver lists them; asking CUDA would fix what this process sees.
int gpus_of_the_machine() {
  std::error_code none;
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/driver/nvidia/gpus", none))
    count += entry.is_directory(none) ? 1 : 0;
  return count;
}

}  // namespace

std::string own_gpu(int local_rank, const std::string& visible, int count) {
  std::vector<std::string> gpus;
  if (visible.empty()) {
    for (int i = 0; i < count; ++i) gpus.push_back(format("{}", i));
  } else {
    std::istringstream rest(visible);
    for (std::string gpu; std::getline(rest, gpu, ',');) gpus.push_back(gpu);
  }
  return gpus.size() < 2 ? "" : gpus[static_cast<size_t>(local_rank) % gpus.size()];
}

std::string take_own_gpu(const RankEnvironment& environment) {
  if (environment.local_size < 2) return {};
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::string gpu = own_gpu(environment.local_rank, visible == nullptr ? "" : visible,
                                  gpus_of_the_machine());
  if (!gpu.empty()) ::setenv("CUDA_VISIBLE_DEVICES", gpu.c_str(), 1);
  return gpu;
}

}  // namespace bev
