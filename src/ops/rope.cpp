#include "ops/rope.h"

#include "ops/op_table.h"
#include "ops/operands.h"

namespace bev::ops {

void rope(Exec& ex, const Rope& r) {
  const Operands args(ex, "rope");
  if (!r.inverse) args.set_pass(Phase::Forward);
  args.rank("x", r.x, 3);
  args.rank("cosine", r.cosine, 2);
  args.floating("x", r.x);
  const DType angles = accumulation_of(r.x.dtype);
  const Shape& table = r.cosine.shape;
  args.require(2 * table[1] <= r.x.shape[2], "the table turns more dims than head_dim");
  args.update("x", r.x, r.x.shape, r.x.dtype);
  args.read("positions", r.positions, {r.x.rows()}, DType::i32);
  args.check("cosine", r.cosine, table, angles);
  args.check("sine", r.sine, table, angles);
  // Each token reads one row of either table.
  args.count_bytes(2 * static_cast<size_t>(r.x.rows() * table[1]) * size_of(angles));
  ex.device.ops().rope(ex, r);
}

}  // namespace bev::ops
