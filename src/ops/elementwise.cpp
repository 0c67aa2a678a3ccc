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

void scale(Exec& ex, const Scaling& s) {
  const Operands args(ex, "scale");
  args.rank("x", s.x, 2);
  args.floating("x", s.x);
  args.read("x", s.x, s.x.shape, s.x.dtype);
  args.write("y", s.y, s.x.shape, s.x.dtype);
  ex.device.ops().scale(ex, s);
}

void activate(Exec& ex, const Activate& a) {
  const Operands args(ex, "activate");
  args.rank("y", a.y, 2);
  args.floating("x", a.x);
  const int64_t halves = is_gated(a.activation) ? 2 : 1;
  args.read("x", a.x, {a.y.shape[0], halves * a.y.shape[1]}, a.x.dtype);
  args.write("y", a.y, a.y.shape, a.x.dtype);
  ex.device.ops().activate(ex, a);
}

void activate_backward(Exec& ex, const ActivateBackward& a) {
  const Operands args(ex, "activate_backward");
  args.rank("dy", a.dy, 2);
  args.floating("x", a.x);
  const int64_t halves = is_gated(a.activation) ? 2 : 1;
  const Shape input{a.dy.shape[0], halves * a.dy.shape[1]};
  args.read("dy", a.dy, a.dy.shape, a.x.dtype);
  args.read("x", a.x, input, a.x.dtype);
  args.write("dx", a.dx, input, a.x.dtype);
  ex.device.ops().activate_backward(ex, a);
}

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
