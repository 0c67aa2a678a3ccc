#include "device/cuda/gpu_info.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <link.h>

#include <array>
#include <sstream>

#include "base/format.h"
#include "base/system_file.h"
#include "device/cuda/cuda_library.h"
#include "device/cuda/nvml.h"

namespace bev::cuda {

namespace {

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

void set_version(LibraryInfo& facts, int number) {
  facts.number = number;
  facts.version = format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

// The file behind it, where the loader says.
std::string file_of(const CudaLibrary& library) {
  link_map* map = nullptr;
  void* answer = static_cast<void*>(&map);
  const bool known = ::dlinfo(library.handle(), RTLD_DI_LINKMAP, answer) == 0 && *map->l_name != 0;
  return known ? map->l_name : library.path();
}

CudaLibrary open_library(LibraryInfo& facts, const std::vector<std::string>& names) {
  CudaLibrary library = CudaLibrary::open(names, facts.why);
  if (library.loaded()) facts.path = file_of(library);
  return library;
}

// `symbol` returns the number of the version.
void find_library(LibraryInfo& facts, const std::vector<std::string>& names, const char* symbol) {
  const CudaLibrary library = open_library(facts, names);
  if (const auto version = reinterpret_cast<size_t (*)()>(library.find(symbol))) {
    set_version(facts, static_cast<int>(version()));
  }
}

void find_nccl(LibraryInfo& facts) {
  const CudaLibrary library = open_library(facts, {"libnccl.so.2"});
  const auto version = reinterpret_cast<int (*)(int*)>(library.find("ncclGetVersion"));
  int number = 0;
  if (version != nullptr && version(&number) == 0) set_version(facts, number);
}

// The first word with two dots in "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06 ...".
std::string kernel_module_version() {
  for (const std::string& word : words_of(system_line("/proc/driver/nvidia/version"))) {
    if (word.find_first_not_of("0123456789.") == std::string::npos &&
        word.find('.') != std::string::npos)
      return word;
  }
  return {};
}

GpuInfo describe(int ordinal, const Nvml& nvml) {
  GpuInfo gpu{.index = ordinal};
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, ordinal) != cudaSuccess) return gpu;
  gpu.name = properties.name;
  gpu.compute_capability = 10 * properties.major + properties.minor;
  gpu.multiprocessors = properties.multiProcessorCount;
  gpu.memory_total = static_cast<int64_t>(properties.totalGlobalMem);
  int kilohertz = 0;
  if (cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, ordinal) == cudaSuccess) {
    gpu.max_clock_mhz = kilohertz / 1000;
  }
  std::array<char, 32> bus_id{};
  if (cudaDeviceGetPCIBusId(bus_id.data(), bus_id.size(), ordinal) == cudaSuccess) {
    nvml.describe(bus_id.data(), gpu);
  }
  return gpu;
}

}  // namespace

CudaInfo gpu_facts(Depth depth) {
  CudaInfo facts{
      .is_built = true, .built_with = CUDART_VERSION, .built_for = words_of(BEV_GPU_CODE)};
#ifdef BEV_HAS_CUDNN
  facts.has_cudnn = true;
#endif
  const Nvml nvml(facts.nvml);
  facts.driver = nvml.driver_version();
  if (facts.driver.empty()) facts.driver = kernel_module_version();
  facts.installed_gpus = nvml.gpu_count();
  if (cudaDriverGetVersion(&facts.driver_cuda) != cudaSuccess) facts.driver_cuda = 0;
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) {
    facts.error = cudaGetErrorName(status);
    facts.error_text = cudaGetErrorString(status);
    count = 0;
  }
  for (int i = 0; i < count; ++i) facts.gpus.push_back(describe(i, nvml));
  cudaGetLastError();  // What failed was reported; it must not fail the next call.
  if (depth == Depth::Libraries) {
    find_library(facts.cublaslt, {format("libcublasLt.so.{}", CUDART_VERSION / 1000)},
                 "cublasLtGetVersion");
    find_library(facts.cudnn, {"libcudnn.so.9"}, "cudnnGetVersion");
    open_library(facts.runtime, {format("libcudart.so.{}", CUDART_VERSION / 1000)});
    find_nccl(facts.nccl);
  }
  return facts;
}

std::string gpu_name(int ordinal) {
  cudaDeviceProp properties{};
  const bool known = cudaGetDeviceProperties(&properties, ordinal) == cudaSuccess;
  cudaGetLastError();
  return known ? properties.name : "";
}

}  // namespace bev::cuda
