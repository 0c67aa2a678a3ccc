#include "ops/norm.h"

#include "ops/op_table.h"
#include "ops/operands.h"

namespace bev::ops {

namespace {

struct NormExtents {
  int64_t rows, width;
};

NormExtents extents_of(const Operands& args, const char* name, const ConstTensor& x) {
  args.require(x.shape.rank() >= 2, "the normalised tensor needs at least 2 dims");
  args.floating(name, x);
  const int64_t width = x.shape[x.shape.rank() - 1];
  args.require(width > 0, "width is 0");
  return {leading_elements(x.shape), width};
}

// weight, bias, mean and rstd of a forward, which the two forwards share.
template <class Args>
void check_forward(const Operands& args, const Args& n, NormExtents size, DType dtype) {
  args.read("weight", n.weight, {size.width}, dtype);
  args.write("rstd", n.rstd, {size.rows}, accumulation_of(dtype));
  if (n.kind == NormKind::LayerNorm) {
    if (n.bias.present()) args.read("bias", n.bias, {size.width}, dtype);
    args.write("mean", n.mean, {size.rows}, accumulation_of(dtype));
  } else {
    args.absent("bias", n.bias);
    args.absent("mean", n.mean);
  }
}

}  // namespace

void norm(Exec& ex, const Norm& n) {
  const Operands args(ex, "norm");
  const NormExtents size = extents_of(args, "x", n.x);
  args.read("x", n.x, n.x.shape, n.x.dtype);
  args.write("y", n.y, n.x.shape, n.x.dtype);
  check_forward(args, n, size, n.x.dtype);
  ex.device.ops().norm(ex, n);
}

void residual_norm(Exec& ex, const ResidualNorm& n) {
  const Operands args(ex, "residual_norm");
  args.rank("residual", n.residual, 2);
  const NormExtents size = extents_of(args, "residual", n.residual);
  const Shape& shape = n.residual.shape;
  const DType dtype = n.residual.dtype;
  args.read("residual", n.residual, shape, dtype);
  args.read("delta", n.delta, shape, dtype);
  check_dropout(args, n.dropout, size.rows);
  args.write("sum", n.sum, shape, dtype);
  args.write("y", n.y, shape, dtype);
  check_forward(args, n, size, dtype);
  ex.device.ops().residual_norm(ex, n);
}

void norm_backward(Exec& ex, const NormBackward& n) {
  const Operands args(ex, "norm_backward");
  const NormExtents size = extents_of(args, "x", n.x);
  const Shape& shape = n.x.shape;
  const DType dtype = n.x.dtype;
  const DType sums = accumulation_of(dtype);
  args.read("x", n.x, shape, dtype);
  args.read("dy", n.dy, shape, dtype);
  args.read("weight", n.weight, {size.width}, dtype);
  args.read("rstd", n.rstd, {size.rows}, sums);
  if (n.kind == NormKind::LayerNorm) {
    args.read("mean", n.mean, {size.rows}, sums);
    if (n.dbias.present()) args.update("dbias", n.dbias, {size.width}, sums);
  } else {
    args.absent("mean", n.mean);
    args.absent("dbias", n.dbias);
  }
  if (n.dresidual.present()) {
    args.rank("x", n.x, 2);
    args.read("dresidual", n.dresidual, shape, dtype);
  }
  args.write("dx", n.dx, shape, dtype);
  args.update("dweight", n.dweight, {size.width}, sums);
  if (n.dx_sums.present()) args.update("dx_sums", n.dx_sums, {size.width}, sums);
  ex.device.ops().norm_backward(ex, n);
}

}  // namespace bev::ops
