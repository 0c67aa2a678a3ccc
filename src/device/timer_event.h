// When a stream reached a point of its work: the only timer of a device. Events order work and
// carry no time.
#pragma once

#include <utility>

#include "device/device.h"

namespace bev {

// Has one owner; the device must outlive it.
class TimeMark {
 public:
  TimeMark() = default;  // absent
  // Reached when everything issued on the stream so far is done.
  TimeMark(Device& device, Stream stream)
      : device_(&device), timer_(device.start_timer(stream.index())) {}
  TimeMark(TimeMark&& other) noexcept { swap(other); }
  TimeMark& operator=(TimeMark&& other) noexcept {
    TimeMark taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~TimeMark() {
    if (device_ != nullptr) device_->release_timer(timer_);
  }

  bool present() const { return device_ != nullptr; }

  // From another mark of the same device to this one; waits until both are reached. REQUIRES: both
  // are present.
  double seconds_since(const TimeMark& earlier) const {
    return device_->seconds_between(earlier.timer_, timer_);
  }

 private:
  void swap(TimeMark& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(timer_, other.timer_);
  }

  Device* device_ = nullptr;
  uint64_t timer_ = 0;
};

}  // namespace bev
