// Timing that can be compared: warm-up, many runs, median and spread.
#pragma once

#include <functional>
#include <vector>

#include "device/device.h"
#include "device/exec.h"

namespace bev {

struct Timing {
  double median = 0;         // seconds
  double low = 0, high = 0;  // the quartiles
  double best = 0;
  int64_t runs = 0;
  int64_t calls = 1;  // made in each run; the times are of one call
};

// Calls body once to warm up, then until `seconds` have passed and at least `min_runs` were made.
Timing measure(const std::function<void()>& body, double seconds, int64_t min_runs = 3);

// The same of work for a device. Where calls return before their work is done, a run is as many
// calls as take a few milliseconds and ends when the device has finished them: what remains of the
// way between host and device is then a small part, and launches overlap the work as in a step.
Timing measure_on(Device& device, const std::function<void()>& body, double seconds,
                  int64_t min_runs = 3);

// The median and quartiles of given times. REQUIRES: not empty.
Timing summarize(std::vector<double> times);

// A device with memory for operands and workspaces and an Exec, for timing single ops.

struct RigSizes {
  size_t operands = 0, scratch = 0;  // bytes
};

class OpRig {
 public:
  OpRig(Device& device, const RigSizes& sizes);

  Exec& exec() { return exec_; }
  // Its content is undefined; on the null device it has none.
  Tensor make(Shape shape, DType dtype) { return slab_.allocate(shape, dtype, "operand"); }
  // The same with normally distributed numbers: how fast a GEMM runs depends on its operands,
  // since what the hardware may draw limits its clocks, and zeros draw least.
  Tensor make_varied(Shape shape, DType dtype);
  void clear() { slab_.release(0); }
  RigSizes peaks() const { return {slab_.peak(), scratch_.peak()}; }

 private:
  Arena slab_, scratch_, none_;
  Exec exec_;
};

// What `work` takes of a rig on such a device, found by doing it on a null device.
RigSizes rig_sizes(const Device& device, const std::function<void(OpRig&)>& work);

}  // namespace bev
