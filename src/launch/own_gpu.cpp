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

std::vector<std::string> visible_gpus(const char* visible, int count) {
  std::vector<std::string> gpus;
  if (visible == nullptr) {
    for (int i = 0; i < count; ++i) gpus.push_back(format("{}", i));
  } else {
    std::istringstream rest(visible);
    for (std::string gpu; std::getline(rest, gpu, ',');) gpus.push_back(gpu);
  }
  return gpus;
}

void take_own_gpu(RankEnvironment& environment) {
  const std::vector<std::string> gpus =
      visible_gpus(std::getenv("CUDA_VISIBLE_DEVICES"), gpus_of_the_machine());
  environment.local_gpus = static_cast<int>(gpus.size());
  if (environment.local_size < 2 || gpus.size() < 2) return;
  const std::string& own = gpus[static_cast<size_t>(environment.local_rank) % gpus.size()];
  ::setenv("CUDA_VISIBLE_DEVICES", own.c_str(), 1);
}

}  // namespace bev
