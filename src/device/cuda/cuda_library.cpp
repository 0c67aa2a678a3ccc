#include "device/cuda/cuda_library.h"

#include <cstdlib>

#include "base/check.h"

namespace bev::cuda {

namespace {

// The loader's own search first, hence the empty one: that a file is not in a guessed folder says
// less than why that search failed.
std::vector<std::string> folders() {
  std::vector<std::string> result{""};
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* root = std::getenv(variable);
    if (root != nullptr && *root != '\0') result.push_back(std::string(root) + "/lib64/");
  }
  result.emplace_back("/usr/local/cuda/lib64/");
  return result;
}

}  // namespace

CudaLibrary CudaLibrary::open(const std::vector<std::string>& names, std::string& why) {
  std::vector<std::string> paths;
  std::string tried;
  for (const std::string& folder : folders()) {
    for (const std::string& name : names) {
      paths.push_back(folder + name);
      tried += (tried.empty() ? "" : ", ") + paths.back();
    }
  }
  CudaLibrary library(paths, why);
  if (!library.loaded()) why = format("none of {} could be loaded: {}", tried, why);
  return library;
}

void* CudaLibrary::require(const char* symbol) const {
  void* address = find(symbol);
  BEV_CHECK(address != nullptr, Device, "{} has no {}: it is of another version than this program",
            path(), symbol);
  return address;
}

}  // namespace bev::cuda
