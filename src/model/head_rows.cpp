#include "model/head_rows.h"

#include "ops/elementwise.h"
#include "ops/embedding.h"

namespace bev {

Tensor take_rows(Exec& ex, const TensorRegion& region, int64_t tokens, ConstTensor x,
                 ConstTensor ids) {
  const Tensor rows = ex.scratch.allocate({ids.shape[0], x.shape[1]}, x.dtype, "head.rows");
  ops::embedding(
      ex, {.table = x, .ids = ids, .row_begin = region.first_local_row(tokens), .out = rows});
  region.sum_sharded_rows(ex, rows);
  return rows;
}

void put_rows(Exec& ex, const TensorRegion& region, int64_t tokens, ConstTensor drows,
              ConstTensor ids, Tensor dx) {
  const Tensor sums =
      ex.scratch.allocate(dx.shape, accumulation_of(dx.dtype), "head.scattered_rows");
  ops::fill(ex, {.out = sums, .value = 0});
  ops::embedding_backward(
      ex, {.dout = drows, .ids = ids, .row_begin = region.first_local_row(tokens), .dtable = sums});
  ops::copy(ex, {.in = sums, .out = dx});
}

}  // namespace bev
