// A device with memory for operands and workspaces and an Exec, for timing single ops.
#pragma once

#include <functional>

#include "device/exec.h"

namespace bev {

struct RigSizes {
  size_t operands = 0, scratch = 0;  // bytes
};

class Rig {
 public:
  Rig(Device& device, const RigSizes& sizes);

  Exec& exec() { return exec_; }
  // Its content is undefined; on the null device it has none.
  Tensor make(Shape shape, DType dtype) { return slab_.allocate(shape, dtype, "operand"); }
  // The same with normally distributed numbers: how fast a product runs depends on its operands,
  // since what the hardware may draw limits its clocks, and zeros draw least.
  Tensor make_varied(Shape shape, DType dtype);
  void clear() { slab_.release(0); }
  RigSizes peaks() const { return {slab_.peak(), scratch_.peak()}; }

 private:
  Arena slab_, scratch_, none_;
  Exec exec_;
};

// What `work` takes of a rig on such a device, found by doing it on a null device.
RigSizes rig_sizes(const Device& device, const std::function<void(Rig&)>& work);

}  // namespace bev
