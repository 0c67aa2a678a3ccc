// What is wrong with this machine for training, and how to mend it: a pure function of facts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "app/doctor/host_info.h"
#include "device/cuda/gpu_info.h"

namespace bev::app {

enum class Severity : uint8_t {
  Note,     // good to know
  Warning,  // training works, but slower or with less room than it could
  Fault,    // the best device of this machine cannot train
};
std::string_view name_of(Severity severity);

struct Finding {
  Severity severity{};
  std::string_view code;  // stable, for scripts: "driver-too-old"
  std::string what;       // is so
  std::string mend{};     // what to do about it; empty: nothing
};

// In the order of importance to a reader: faults first.
std::vector<Finding> diagnose(const HostFacts& host, const CudaFacts& cuda);

bool has_fault(const std::vector<Finding>& findings);

// Whether code built for these architectures ("90-real", "80-virtual", "90a-real") runs on a GPU of
// this compute capability. `ptx_works`: whether the driver can translate PTX of this build.
bool has_code_for(const std::vector<std::string>& built_for, int compute_capability,
                  bool ptx_works);

// The oldest Linux driver for this CUDA version: "580.65.06"; empty when it is not known here.
std::string_view oldest_driver(int cuda_version);

// 13000 -> "13.0".
std::string cuda_version_text(int version);

}  // namespace bev::app
