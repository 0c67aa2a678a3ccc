// A library of NVIDIA's that is loaded when it is needed.
#pragma once

#include <string>
#include <vector>

#include "base/shared_library.h"

namespace bev::cuda {

class CudaLibrary : public bev::SharedLibrary {
 public:
  CudaLibrary() = default;

  // Opens the first of `names` that loads: as the loader finds it (LD_LIBRARY_PATH, rpath), then in
  // the folders of the CUDA toolkit. Where none does, the result is not loaded() and `why` says
  // what was tried and what the loader answered.
  static CudaLibrary open(const std::vector<std::string>& names, std::string& why);

  // Throws a Device error where the library has no such symbol. F: a pointer to a function.
  template <class F>
  void resolve(F& function, const char* symbol) const {
    function = reinterpret_cast<F>(require(symbol));
  }

 private:
  CudaLibrary(const std::vector<std::string>& paths, std::string& why)
      : bev::SharedLibrary(paths, Symbols::Own, why) {}
  void* require(const char* symbol) const;
};

}  // namespace bev::cuda
