// The few functions of NVIDIA's management library that are used, loaded at run time. Its header is
// not part of every CUDA toolkit; the declarations here follow NVML's stable binary interface.
#pragma once

#include <string>
#include <vector>

#include "device/cuda/cuda_library.h"
#include "device/cuda/gpu_info.h"

namespace bev::cuda {

class Nvml {
 public:
  // Loads and starts the library. `facts` says which, or why not.
  explicit Nvml(LibraryInfo& facts);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  bool is_usable() const { return started_; }
  std::string driver_version() const;
  int gpu_count() const;
  // Adds what the library knows about the GPU with this PCI address: memory, clocks, ECC,
  // persistence, processes.
  void describe(const std::string& bus_id, GpuInfo& gpu) const;

 private:
  using GpuHandle = void*;
  // Calls a function of the library; false when there is none of that name or it fails.
  template <class... Args>
  bool call(const char* name, Args... args) const;
  std::vector<GpuProcess> processes(GpuHandle gpu) const;

  CudaLibrary library_;
  bool started_ = false;
};

}  // namespace bev::cuda
