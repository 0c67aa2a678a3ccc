#include "ops/update.h"

#include "ops/op_table.h"
#include "ops/operands.h"

namespace bev::ops {

namespace {

// The dtype a gradient or a moment is expected in: short where it is stored so, else the sums'.
DType stored(const ConstTensor& t, DType param) {
  return t.dtype == param ? param : accumulation_of(param);
}

// What the updates of all optimizers share. Returns the dtype of the optimizer's state.
template <class Args>
DType check_update(const Operands& args, const Args& a) {
  args.rank("param", a.param, 1);
  args.floating("param", a.param);
  const Shape& shape = a.param.shape;
  const DType sums = accumulation_of(a.param.dtype);
  if (a.master.present()) {
    args.write("param", a.param, shape, a.param.dtype);
    args.update("master", a.master, shape, sums);
  } else {
    args.update("param", a.param, shape, a.param.dtype);
  }
  args.read("grad", a.grad, shape, stored(a.grad, a.param.dtype));
  args.read("decision", a.decision, {kUpdateDecisions}, DType::f64);
  return sums;
}

}  // namespace

void loss_factors(Exec& ex, const LossFactors& f) {
  const Operands args(ex, "loss_factors");
  args.rank("counts", f.counts, 1);
  args.require(f.counts.shape[0] <= kMostLosses, "there are too many losses");
  args.read("counts", f.counts, f.counts.shape, DType::f64);
  if (f.loss_scale.present()) args.read("loss_scale", f.loss_scale, {1}, DType::f64);
  args.write("out", f.out, f.counts.shape, DType::f64);
  ex.device.ops().loss_factors(ex, f);
}

void decide_update(Exec& ex, const DecideUpdate& u) {
  const Operands args(ex, "decide_update");
  args.read("norm_squared", u.norm_squared, {1}, DType::f64);
  args.require(u.rule.losses <= kMostLosses, "there are too many losses");
  args.read("loss", u.loss, {2 * u.rule.losses}, DType::f64);
  args.update("state", u.state, {kUpdateStates}, DType::f64);
  args.write("decision", u.decision, {kUpdateDecisions}, DType::f64);
  args.require(u.rule.max_norm >= 0, "max_norm is negative");
  ex.device.ops().decide_update(ex, u);
}

void adamw(Exec& ex, const AdamW& a) {
  const Operands args(ex, "adamw");
  check_update(args, a);
  args.require(a.first % 4 == 0, "first is not a multiple of 4");
  args.update("m", a.m, a.param.shape, stored(a.m, a.param.dtype));
  args.update("v", a.v, a.param.shape, stored(a.v, a.param.dtype));
  ex.device.ops().adamw(ex, a);
}

void sgd(Exec& ex, const Sgd& s) {
  const Operands args(ex, "sgd");
  const DType sums = check_update(args, s);
  args.update("buffer", s.buffer, s.param.shape, sums);
  ex.device.ops().sgd(ex, s);
}

}  // namespace bev::ops
