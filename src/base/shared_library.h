// A library that is loaded when it is needed, so that the program starts where it is absent.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <span>
#include <string>

namespace bev {

// Stays loaded until the process ends: libraries leave callbacks and threads behind.
class SharedLibrary {
 public:
  // Whether libraries that are loaded later see its symbols.
  enum class Symbols : uint8_t { Own, Shared };

  SharedLibrary() = default;
  // The first of `paths` that loads. A name without a slash is looked for as the loader does
  // (LD_LIBRARY_PATH, rpath). Where none loads, the result is not loaded() and `why` has what the
  // loader answered for the first.
  SharedLibrary(std::span<const std::string> paths, Symbols symbols, std::string& why);

  bool loaded() const { return handle_ != nullptr; }
  void* handle() const { return handle_; }
  const std::string& path() const { return path_; }
  // Null where the library has no such symbol.
  void* find(const char* symbol) const;

 private:
  void* handle_ = nullptr;
  std::string path_;
};

inline SharedLibrary::SharedLibrary(std::span<const std::string> paths, Symbols symbols,
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

inline void* SharedLibrary::find(const char* symbol) const {
  return loaded() ? ::dlsym(handle_, symbol) : nullptr;
}

}  // namespace bev
