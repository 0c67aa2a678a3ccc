// bevatron doctor: information about the machine, its diagnosis, and the report.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/machine_peak.h"
#include "device/cuda/gpu_info.h"

namespace bev::app {

// A file through which the driver is reached: /dev/nvidia0, /dev/nvidiactl, /dev/nvidia-uvm.
struct DeviceFile {
  std::string path, owner, group;
  int mode = 0;  // 0660
  bool is_usable = false;
};

struct HostInfo {
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

HostInfo host_info();

enum class Severity : uint8_t {
  Note,     // good to know
  Warning,  // training works, but slower or with less room than it could
  Fault,    // the best device of this machine cannot train
};
std::string_view name_of(Severity severity);

struct MachineIssue {
  Severity severity{};
  std::string_view code;  // stable, for scripts: "driver-too-old"
  std::string what;       // is so
  std::string fix{};      // what to do about it; empty: nothing
};

// In the order of importance to a reader: faults first.
std::vector<MachineIssue> diagnose(const HostInfo& host, const CudaInfo& cuda);

bool has_fault(const std::vector<MachineIssue>& findings);

// Whether code built for these architectures ("90-real", "80-virtual", "90a-real") runs on a GPU of
// this compute capability. `ptx_works`: whether the driver can translate PTX of this build.
bool has_code_for(const std::vector<std::string>& built_for, int compute_capability,
                  bool ptx_works);

// The oldest Linux driver for this CUDA version: "580.65.06"; empty when it is not known here.
std::string_view oldest_driver(int cuda_version);

// 13000 -> "13.0".
std::string cuda_version_text(int version);

// The rates of a device; a GPU has its transfers too.
struct MeasuredDevice {
  MachinePeak peak{};
  std::optional<TransferRates> transfers{};
};

struct Examination {
  HostInfo host{};
  CudaInfo cuda{};
  std::optional<MeasuredDevice> cpu{}, gpu{};  // absent: not measured
  std::vector<MachineIssue> findings{};
};

std::string doctor_text(const Examination& e);
std::string doctor_json(const Examination& e);

}  // namespace bev::app
