// What can be learned about the GPUs of this machine and NVIDIA's libraries, as plain numbers and
// texts: no CUDA header is needed to read them. Nothing here throws; what is not known stays empty.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bev {

// A process that has memory on a GPU.
struct GpuProcess {
  int64_t id = 0;
  std::string name{};  // empty: not visible from here
  int64_t bytes = 0;
};

struct GpuInfo {
  int index = 0;  // among the visible ones
  std::string name{};
  int compute_capability = 0;  // 90 for sm_90
  int multiprocessors = 0;
  int64_t memory_total = 0, memory_free = 0;  // bytes; free is 0 where it is not known
  int clock_mhz = 0, max_clock_mhz = 0, memory_clock_mhz = 0;
  std::optional<bool> ecc{}, persistence{};
  std::vector<GpuProcess> processes{};  // others than this one
};

// A library that is loaded at run time.
struct LibraryInfo {
  std::string name{};
  std::string path{};     // empty: it could not be loaded
  std::string version{};  // "9.19.0"
  int number = 0;         // the same as 91900; 0: unknown
  std::string why{};      // what was tried and what the loader said, when it could not
  bool is_loaded() const { return !path.empty(); }
};

struct CudaInfo {
  bool is_built = false;                 // whether this program has the cuda backend
  int built_with = 0;                    // 13000: CUDA 13.0
  std::vector<std::string> built_for{};  // "90-real", "80-virtual"
  std::string driver{};                  // "580.65.06"; empty: none or unknown
  int driver_cuda = 0;                   // the newest CUDA it knows; 0: there is no libcuda.so.1
  std::string error{}, error_text{};     // "cudaErrorNoDevice" and its meaning; empty: none
  int installed_gpus = 0;                // as NVML counts them, visible to CUDA or not
  std::vector<GpuInfo> gpus{};           // that CUDA sees
  bool has_cudnn = false;                // whether this program can use cuDNN
  LibraryInfo nvml{.name = "NVML"}, cublaslt{.name = "cuBLASLt"}, cudnn{.name = "cuDNN"},
      nccl{.name = "NCCL"};
  LibraryInfo runtime{.name = "runtime"};  // libcudart, through which cuDNN is used
};

namespace cuda {

// Which versions of cuDNN are used: attention of 9.10.0 and 9.10.1 is broken.
constexpr int kOldestCudnn = 90600;
constexpr bool is_broken_cudnn(int number) { return number == 91000 || number == 91001; }

// Which part of the facts is wanted: loading the large libraries takes a while.
enum class Depth : uint8_t { Gpus, Libraries };
CudaInfo gpu_facts(Depth depth);

// The name of a visible GPU; empty when there is none.
std::string gpu_name(int ordinal);

}  // namespace cuda

}  // namespace bev
