// Timing on a device: timer events, and the time a rank waits for others.
#pragma once

#include <deque>
#include <utility>
#include <vector>

#include "device/device.h"

namespace bev {

// Has one owner; the device must outlive it.
class TimerEvent {
 public:
  TimerEvent() = default;  // absent
  // Reached when everything issued on the stream so far is done.
  TimerEvent(Device& device, Stream stream)
      : device_(&device), timer_(device.start_timer(stream.index())) {}
  TimerEvent(TimerEvent&& other) noexcept { swap(other); }
  TimerEvent& operator=(TimerEvent&& other) noexcept {
    TimerEvent taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~TimerEvent() {
    if (device_ != nullptr) device_->release_timer(timer_);
  }

  bool present() const { return device_ != nullptr; }

  // From another mark of the same device to this one; waits until both are reached. REQUIRES: both
  // are present.
  double seconds_since(const TimerEvent& earlier) const {
    return device_->seconds_between(earlier.timer_, timer_);
  }

 private:
  void swap(TimerEvent& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(timer_, other.timer_);
  }

  Device* device_ = nullptr;
  uint64_t timer_ = 0;
};

// How long the work of a rank stood still for other ranks, step by step.

// Counts on the compute stream only: what passes on other streams holds nobody up.
class WaitTimer {
 public:
  explicit WaitTimer(Device& device) : device_(device) {}

  void next_step() { steps_.emplace_back(); }
  // Around the issue of a wait or a collective. Calls do not nest.
  void begin(Stream stream);
  void end(Stream stream);

  // Of the oldest step not taken. REQUIRES: there is one, and its work is done.
  double take();

 private:
  struct Span {
    TimerEvent begin, end;
  };
  bool counts(Stream stream) const { return stream.index() == 0 && !steps_.empty(); }

  Device& device_;
  std::deque<std::vector<Span>> steps_;
};

}  // namespace bev
