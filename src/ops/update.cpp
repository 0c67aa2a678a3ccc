#include "ops/update.h"

#include "ops/check_tensor.h"
#include "ops/op_table.h"

namespace bev::ops {

namespace {

// What the updates of all optimizers share. Returns the dtype of the optimizer's state.
template <class Args>
DType check_update(const Operands& args, const Args& a) {
  args.rank("param", a.param, 1);
  args.floating("param", a.param);
  args.require(a.step >= 1, "step counts from 1");
  const Shape& shape = a.param.shape;
  const DType sums = accumulation_of(a.param.dtype);
  if (a.master.present()) {
    args.write("param", a.param, shape, a.param.dtype);
    args.update("master", a.master, shape, sums);
  } else {
    args.update("param", a.param, shape, a.param.dtype);
  }
  args.read("grad", a.grad, shape, sums);
  args.read("control", a.control, {2}, DType::f64);
  return sums;
}

}  // namespace

void update_control(Exec& ex, const UpdateControl& u) {
  const Operands args(ex, "update_control");
  args.read("norm_squared", u.norm_squared, {1}, DType::f64);
  args.write("control", u.control, {2}, DType::f64);
  args.require(u.max_norm >= 0, "max_norm is negative");
  ex.device.ops().update_control(ex, u);
}

void adamw(Exec& ex, const AdamW& a) {
  const Operands args(ex, "adamw");
  const DType sums = check_update(args, a);
  args.update("m", a.m, a.param.shape, sums);
  args.update("v", a.v, a.param.shape, sums);
  ex.device.ops().adamw(ex, a);
}

void sgd(Exec& ex, const Sgd& s) {
  const Operands args(ex, "sgd");
  const DType sums = check_update(args, s);
  args.update("buffer", s.buffer, s.param.shape, sums);
  ex.device.ops().sgd(ex, s);
}

}  // namespace bev::ops
