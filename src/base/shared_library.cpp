#include "base/shared_library.h"

#include <dlfcn.h>

namespace bev {

SharedLibrary::SharedLibrary(std::span<const std::string> paths, Symbols symbols,
                             std::string& why) {
  const int scope = symbols == Symbols::Shared ? RTLD_GLOBAL : RTLD_LOCAL;
  why.clear();
  for (const std::string& path : paths) {
    handle_ = ::dlopen(path.c_str(), RTLD_NOW | scope);
    if (loaded()) {
      path_ = path;
      return;
    }
    const char* answer = ::dlerror();
    if (answer != nullptr && why.empty()) why = answer;
  }
}

void* SharedLibrary::find(const char* symbol) const {
  return loaded() ? ::dlsym(handle_, symbol) : nullptr;
}

}  // namespace bev
