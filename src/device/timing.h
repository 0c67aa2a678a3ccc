// Timing on a device: timer events, the trace of ops, and the time a rank waits for others.
#pragma once

#include <deque>
#include <string>
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

// When each op of a piece of work ran, by timers in the device's own order, as a file for Chrome's
// or Perfetto's viewer.

// One op of a trace, in seconds since the trace was made.
struct OpSpan {
  const char* op;
  double begin, end;
  int stream = 0;
};

class Trace {
 public:
  explicit Trace(Device& device) : device_(device), origin_(device, device.compute_stream()) {}

  // Around the issue of one op. Calls do not nest.
  void begin(const char* op, Stream stream);
  void end(Stream stream);

  // In the order of issue. Waits for the work.
  std::vector<OpSpan> spans() const;
  // The same as a JSON array of complete events, in microseconds; streams are threads.
  std::string chrome_json() const;

 private:
  struct Marked {
    const char* op;
    int stream;
    TimerEvent begin, end;
  };
  Device& device_;
  TimerEvent origin_;
  std::vector<Marked> ops_;
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
