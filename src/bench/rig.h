// A device with a slab of memory and an Exec, for timing single ops.
#pragma once

#include <optional>

#include "device/exec.h"

namespace bev {

class Rig {
 public:
  Rig(Device& device, size_t slab_bytes)
      : slab_(device, slab_bytes, "benchmark"),
        none_(device, 0, "none"),
        exec_{device, device.compute_stream(), slab_, none_, none_, nullptr} {}

  Exec& exec() { return exec_; }
  Tensor make(Shape shape, DType dtype) { return slab_.allocate(shape, dtype, "operand"); }
  void clear() { slab_.release(0); }

 private:
  Arena slab_, none_;
  Exec exec_;
};

}  // namespace bev
