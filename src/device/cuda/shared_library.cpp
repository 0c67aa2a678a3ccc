#include "device/cuda/shared_library.h"

#include <dlfcn.h>

#include <cstdlib>

#include "base/check.h"

namespace bev::cuda {

namespace {

// The loader's own search first, hence the empty one.
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

SharedLibrary SharedLibrary::open(const std::vector<std::string>& names, std::string& why) {
  SharedLibrary library;
  std::string tried, answer;
  for (const std::string& folder : folders()) {
    for (const std::string& name : names) {
      const std::string path = folder + name;
      library.handle_ = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (library.loaded()) {
        library.path_ = path;
        return library;
      }
      tried += (tried.empty() ? "" : ", ") + path;
      const char* error = ::dlerror();
      // That a file is not in a guessed folder says less than why the loader's own search failed.
      if (error != nullptr && answer.empty()) answer = error;
    }
  }
  why = format("none of {} could be loaded: {}", tried, answer);
  return library;
}

void* SharedLibrary::find(const char* symbol) const {
  return loaded() ? ::dlsym(handle_, symbol) : nullptr;
}

void* SharedLibrary::require(const char* symbol) const {
  void* address = find(symbol);
  BEV_CHECK(address != nullptr, Device, "{} has no {}: it is of another version than this program",
            path_, symbol);
  return address;
}

}  // namespace bev::cuda
