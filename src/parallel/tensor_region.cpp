#include "parallel/tensor_region.h"

namespace bev {

namespace {

Shape with_rows(const Shape& shape, int64_t rows) {
  Shape whole = shape;
  whole.set(0, rows);
  return whole;
}

}  // namespace

ConstTensor TensorRegion::enter(Exec& ex, ConstTensor x) const {
  if (tensor_.size() == 1 || !sequence_) return x;
  Tensor whole =
      ex.scratch.allocate(with_rows(x.shape, x.rows() * tensor_.size()), x.dtype, "region.enter");
  tensor_.all_gather(ex, x, whole);
  return whole;
}

Tensor TensorRegion::partial_for(Exec& ex, Tensor out) const {
  if (tensor_.size() == 1 || !sequence_) return out;
  return ex.scratch.allocate(with_rows(out.shape, out.rows() * tensor_.size()), out.dtype,
                             "region.partial");
}

void TensorRegion::leave(Exec& ex, Tensor partial, Tensor out) const {
  if (tensor_.size() == 1) return;
  if (sequence_) {
    tensor_.reduce_scatter(ex, partial, out);
  } else {
    tensor_.all_reduce(ex, out);
  }
}

}  // namespace bev
