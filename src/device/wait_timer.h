// How long the work of a rank stood still for other ranks, step by step.
#pragma once

#include <deque>
#include <vector>

#include "device/timer_event.h"

namespace bev {

// Counts on the compute stream only: what passes on other streams holds nobody up.
class WaitMeter {
 public:
  explicit WaitMeter(Device& device) : device_(device) {}

  void next_step() { steps_.emplace_back(); }
  // Around the issue of a wait or a collective. Calls do not nest.
  void begin(Stream stream);
  void end(Stream stream);

  // Of the oldest step not taken. REQUIRES: there is one, and its work is done.
  double take();

 private:
  struct Span {
    TimeMark begin, end;
  };
  bool counts(Stream stream) const { return stream.index() == 0 && !steps_.empty(); }

  Device& device_;
  std::deque<std::vector<Span>> steps_;
};

}  // namespace bev
