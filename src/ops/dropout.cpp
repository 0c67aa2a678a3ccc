#include "ops/dropout.h"

#include "ops/check_dropout.h"
#include "ops/op_table.h"

namespace bev::ops {

void dropout(Exec& ex, const DropoutApply& d) {
  const Operands args(ex, "dropout");
  args.rank("x", d.x, 2);
  args.floating("x", d.x);
  args.read("x", d.x, d.x.shape, d.x.dtype);
  args.write("y", d.y, d.x.shape, d.x.dtype);
  check_dropout(args, d.dropout, d.x.rows());
  ex.device.ops().dropout(ex, d);
}

void residual_add(Exec& ex, const ResidualAdd& r) {
  const Operands args(ex, "residual_add");
  args.rank("residual", r.residual, 2);
  args.floating("residual", r.residual);
  const Shape& shape = r.residual.shape;
  const DType dtype = r.residual.dtype;
  args.read("residual", r.residual, shape, dtype);
  args.read("delta", r.delta, shape, dtype);
  args.write("out", r.out, shape, dtype);
  check_dropout(args, r.dropout, r.residual.rows());
  ex.device.ops().residual_add(ex, r);
}

}  // namespace bev::ops
