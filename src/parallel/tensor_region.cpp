#include "parallel/tensor_region.h"

#include "base/integer.h"
#include "ops/elementwise.h"

namespace bev {

namespace {

Shape with_rows(const Shape& shape, int64_t rows) {
  Shape whole = shape;
  whole.set(0, rows);
  return whole;
}

}  // namespace

ConstTensor TensorRegion::enter(Exec& ex, ConstTensor x, Arena& arena) const {
  if (tensor_.size() == 1 || !sequence_) return x;
  Tensor whole =
      arena.allocate(with_rows(x.shape, x.rows() * tensor_.size()), x.dtype, "region.enter");
  tensor_.all_gather(ex, x, whole);
  return whole;
}

TensorRegion::Entering TensorRegion::begin_enter(Exec& ex, ConstTensor x, Arena& arena) const {
  if (rows_unchanged()) return {x};
  Exec overlapped = ex.on_stream(ex.device.tensor_stream());
  const ConstTensor whole = enter(overlapped, x, arena);
  return {whole, overlapped.stream.record()};
}

Tensor TensorRegion::partial_buffer(Exec& ex, Tensor out) const {
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

int64_t TensorRegion::local_row_count(int64_t rows) const {
  return rows_unchanged() ? rows : div_exact(rows, tensor_.size());
}

ConstTensor TensorRegion::local_rows(ConstTensor whole) const {
  const int64_t count = local_row_count(whole.shape[0]);
  return rows_unchanged() ? whole : slice(whole, 0, tensor_.rank() * count, count);
}

ConstTensor TensorRegion::all_gather_parts(Exec& ex, ConstTensor part) const {
  Shape shape = part.shape;
  shape.set(0, part.shape[0] * tensor_.size());
  const Tensor all = ex.scratch.allocate(shape, part.dtype, "region.parts");
  tensor_.all_gather(ex, part, all);
  return all;
}

// Sharded by elements, regardless of rows.
ConstTensor TensorRegion::save_shard(Exec& ex, ConstTensor copy) const {
  const int64_t all = copy.shape.elements(), count = div_exact(all, tensor_.size());
  const Tensor part = ex.keep.allocate({count}, copy.dtype, "region.part");
  ops::copy(ex, {.in = slice(reshape(copy, {all}), 0, tensor_.rank() * count, count), .out = part});
  return part;
}

ConstTensor TensorRegion::gather_shards(Exec& ex, ConstTensor part, const Shape& shape,
                                        Arena& arena) const {
  const Tensor whole = arena.allocate(shape, part.dtype, "region.whole");
  tensor_.all_gather(ex, part, reshape(whole, {shape.elements()}));
  return whole;
}

}  // namespace bev
