// What `bevatron doctor` found, as text for people and as JSON for programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/doctor/machine_diagnosis.h"
#include "bench/machine.h"

namespace bev::app {

// The rates of a device; a GPU has its transfers too.
struct MeasuredDevice {
  MachinePeak peak{};
  std::optional<TransferRates> transfers{};
};

struct Examination {
  HostFacts host{};
  CudaFacts cuda{};
  std::optional<MeasuredDevice> cpu{}, gpu{};  // absent: not measured
  std::vector<Finding> findings{};
};

std::string doctor_text(const Examination& e);
std::string doctor_json(const Examination& e);

}  // namespace bev::app
