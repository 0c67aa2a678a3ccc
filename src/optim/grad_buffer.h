// All gradients of this rank in one flat buffer, laid out like the parameters.
#pragma once

#include "device/exec.h"
#include "param/store.h"

namespace bev {

class GradBuffer {
 public:
  // Gives every parameter its gradient tensor. The store must be allocated and outlive this.
  explicit GradBuffer(ParamStore& params);

  // Before the first micro-batch of a step: vectors become zero; matrices are overwritten by their
  // first product (Param::accumulate).
  void begin_step(Exec& ex);

  Tensor flat() const { return flat_; }  // gaps between parameters stay zero

 private:
  ParamStore& params_;
  Buffer buffer_;
  Tensor flat_;
};

}  // namespace bev
