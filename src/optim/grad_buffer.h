// All gradients of this rank in one buffer, in the flat order of the parameters.
#pragma once

#include <span>
#include <vector>

#include "config/choices.h"
#include "device/exec.h"
#include "param/store.h"

namespace bev {

class GradBuffer {
 public:
  // Gives every parameter its gradient tensor. The store must be allocated and outlive this. Bf16
  // makes the gradients of matrices short; those of vectors, few and touchy, keep f32.
  explicit GradBuffer(ParamStore& params, StatePrecision precision = StatePrecision::F32);

  // Before the first micro-batch of a step: vectors become zero; matrices are overwritten by their
  // first product (Param::accumulate).
  void begin_step(Exec& ex);

  // The buffer as tensors of one dtype each, at most two; gaps between parameters stay zero.
  std::span<const Tensor> flat() const { return flat_; }

  // The part that belongs to the flat range [begin, begin + count) of the store. REQUIRES: one
  // dtype.
  Tensor range(int64_t begin, int64_t count) const;

  DType dtype_of(const Param& param) const;

 private:
  ParamStore& params_;
  StatePrecision precision_;
  Buffer buffer_;
  std::vector<Tensor> flat_;
  std::vector<int64_t> begins_;  // of flat_ in the store
  Tensor vectors_;               // the end of the buffer; may be absent
};

}  // namespace bev
