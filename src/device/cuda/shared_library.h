// A library that is loaded when it is needed, so that the program starts where it is absent.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bev::cuda {

// Stays loaded until the process ends: libraries of CUDA leave callbacks with the driver.
class SharedLibrary {
 public:
  SharedLibrary() = default;

  // Opens the first of `names` that loads: as the loader finds it (LD_LIBRARY_PATH, rpath), then in
  // the folders of the CUDA toolkit. Where none does, the result is not loaded() and `why` says
  // what was tried and what the loader answered.
  static SharedLibrary open(const std::vector<std::string>& names, std::string& why);

  bool loaded() const { return handle_ != nullptr; }
  void* handle() const { return handle_; }
  const std::string& path() const { return path_; }

  // Null where the library has no such symbol.
  void* find(const char* symbol) const;

  // Throws a Device error where the library has no such symbol. F: a pointer to a function.
  template <class F>
  void resolve(F& function, const char* symbol) const {
    function = reinterpret_cast<F>(require(symbol));
  }

 private:
  void* require(const char* symbol) const;

  void* handle_ = nullptr;
  std::string path_;
};

}  // namespace bev::cuda
