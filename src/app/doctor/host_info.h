// What the operating system says about this machine, as far as training and its GPUs are concerned.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bev::app {

// A file through which the driver is reached: /dev/nvidia0, /dev/nvidiactl, /dev/nvidia-uvm.
struct DeviceFile {
  std::string path, owner, group;
  int mode = 0;  // 0660
  bool is_usable = false;
};

struct HostFacts {
  std::string processor{};
  std::vector<std::string> extensions{};  // of what the kernels could use: "avx2"
  std::string kernels{};                  // what they do use
  int threads = 1;
  int64_t memory_total = 0, memory_free = 0;  // bytes

  std::string user{};
  int nvidia_cards = 0;            // display and compute devices of NVIDIA on the PCI bus
  bool has_kernel_module = false;  // of NVIDIA's driver
  std::vector<DeviceFile> device_files{};
  bool is_container = false;
  std::optional<std::string> visible_devices{};  // CUDA_VISIBLE_DEVICES
  std::string library_path{};                    // LD_LIBRARY_PATH
  int64_t address_space_limit = 0;               // bytes, ulimit -v; 0: none
  int64_t locked_memory_limit = 0;               // bytes, ulimit -l; 0: none
};

HostFacts host_facts();

}  // namespace bev::app
