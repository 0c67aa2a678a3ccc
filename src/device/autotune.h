// The time in which a device rehearses (Device::is_rehearsing).
#pragma once

#include "device/device.h"

namespace bev {

class Rehearsal {
 public:
  explicit Rehearsal(Device& device) : device_(device) { device_.rehearsing_ = true; }
  ~Rehearsal() { device_.rehearsing_ = false; }
  Rehearsal(const Rehearsal&) = delete;
  Rehearsal& operator=(const Rehearsal&) = delete;

  // What was learned is kept. Without this call it is lost with the rehearsal.
  void finish() { device_.rehearsed_ = device_.end_rehearsal(); }

 private:
  Device& device_;
};

}  // namespace bev
