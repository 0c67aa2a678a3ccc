#include "ops/activation.h"

#include "ops/op_table.h"
#include "ops/operands.h"

namespace bev::ops {

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

}  // namespace bev::ops
