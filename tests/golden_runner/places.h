// Where golden cases are computed: a device and the storage type it computes in.
#pragma once

#include <string>
#include <vector>

#include "config/choices.h"
#include "golden_runner/report.h"
#include "tensor/dtype.h"

namespace bev::golden {

struct Place {
  DeviceKind device;
  Precision precision;

  // "cpu"; "cuda bf16" where a device has several.
  std::string name() const;
  DType dtype() const;
  // Whether rounding is too coarse for what many steps add up.
  bool is_short() const { return size_of(dtype()) < 4; }
};

// All that this machine has. What is missing is reported as skipped for `name`, with the reason.
std::vector<Place> places(const std::string& name, Report& report);

}  // namespace bev::golden
