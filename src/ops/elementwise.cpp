#include "ops/elementwise.h"

#include "ops/op_table.h"
#include "ops/operands.h"

namespace bev::ops {

void copy(Exec& ex, const Copy& c) {
  const Operands args(ex, "copy");
  args.require(c.in.present(), "in is absent");
  args.require(c.in.dtype == c.out.dtype || (is_floating(c.in.dtype) && is_floating(c.out.dtype)),
               "only floating types are converted");
  args.read("in", c.in, c.in.shape, c.in.dtype);
  args.write("out", c.out, c.in.shape, c.out.dtype);
  ex.device.ops().copy(ex, c);
}

void fill(Exec& ex, const Fill& f) {
  const Operands args(ex, "fill");
  args.require(f.out.present(), "out is absent");
  args.write("out", f.out, f.out.shape, f.out.dtype);
  ex.device.ops().fill(ex, f);
}

}  // namespace bev::ops
