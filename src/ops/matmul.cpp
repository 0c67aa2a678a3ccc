#include "ops/matmul.h"

#include <array>

#include "ops/norm.h"
#include "ops/op_table.h"
#include "ops/operands.h"

namespace bev::ops {

namespace {

bool has_bias(Epilogue e) { return e == Epilogue::Bias || e == Epilogue::BiasActivate; }
bool activates(Epilogue e) { return e == Epilogue::Activate || e == Epilogue::BiasActivate; }

void check_epilogue(const Operands& args, const Matmul& m, DType dtype) {
  if (has_bias(m.epilogue)) {
    args.read("bias", m.bias, {m.out.shape[1]}, dtype);
  } else {
    args.absent("bias", m.bias);
  }
  if (!activates(m.epilogue)) {
    args.absent("pre_activation", m.pre_activation);
  } else if (m.pre_activation.present()) {
    args.write("pre_activation", m.pre_activation, m.out.shape, m.out.dtype);
  }
  if (m.epilogue == Epilogue::ActivateBackward) {
    args.read("activation_input", m.activation_input, m.out.shape, m.out.dtype);
  } else {
    args.absent("activation_input", m.activation_input);
  }
  args.require(!is_gated(m.activation) ||
                   !(activates(m.epilogue) || m.epilogue == Epilogue::ActivateBackward),
               "a gated activation cannot be an epilogue");
}

// The layout tells the pass: y = x W^T, dx = dy W, dW = dy^T x (model/linear.h).
Phase pass_of(const Matmul& m) {
  if (m.ta == Transpose::Yes) return Phase::BackwardWeight;
  return m.tb == Transpose::Yes ? Phase::Forward : Phase::BackwardInput;
}

void record_gemm(const Operands& args, const Matmul& m, const std::array<int64_t, 4>& dims) {
  OpCost* const r = args.record();
  if (r == nullptr) return;
  args.set_pass(pass_of(m));
  r->dims = dims;
  r->out = m.out.dtype;
  r->ta = m.ta == Transpose::Yes;
  r->tb = m.tb == Transpose::Yes;
  r->accumulate = m.accumulate;
  const double flops = 2.0 * static_cast<double>(dims[0]) * static_cast<double>(dims[1]) *
                       static_cast<double>(dims[2]);
  args.count_flops(flops, flops);
}

void check_and_count(const Operands& args, const Matmul& m) {
  args.rank("a", m.a, 2);
  args.rank("out", m.out, 2);
  args.floating("a", m.a);
  const DType dtype = m.a.dtype;
  const DType sums = accumulation_of(dtype);
  const int64_t rows = m.out.shape[0], columns = m.out.shape[1];
  const int64_t depth = m.a.shape[m.ta == Transpose::No ? 1 : 0];
  const Shape a = m.ta == Transpose::No ? Shape{rows, depth} : Shape{depth, rows};
  const Shape b = m.tb == Transpose::No ? Shape{depth, columns} : Shape{columns, depth};
  args.read("a", m.a, a, dtype);
  args.read("b", m.b, b, dtype);
  const DType out_dtype = m.out.dtype == sums ? sums : dtype;
  if (m.accumulate) {
    args.update("out", m.out, m.out.shape, out_dtype);
  } else {
    args.write("out", m.out, m.out.shape, out_dtype);
  }
  if (m.addend.present()) {
    args.read("addend", m.addend, m.out.shape, out_dtype);
    args.require(!m.accumulate && (m.epilogue == Epilogue::None || m.epilogue == Epilogue::Bias),
                 "an addend with accumulate or an activation");
  }
  check_epilogue(args, m, dtype);
  if (m.dbias.present()) args.update("dbias", m.dbias, {rows}, sums);
  record_gemm(args, m, {rows, columns, depth, 0});
}

void run_decode_gemm(Exec& ex, const DecodeGemm& d) {
  const Operands args(ex, "decode_gemm");
  const Matmul& m = d.gemm;
  args.require(m.ta == Transpose::No && !m.accumulate && !m.dbias.present(),
               "only forward GEMMs, without accumulate and dbias");
  if (d.norm.present()) {
    args.read("norm.weight", d.norm.weight, {m.a.shape[1]}, m.a.dtype);
    if (d.norm.bias.present()) args.read("norm.bias", d.norm.bias, {m.a.shape[1]}, m.a.dtype);
  }
  check_and_count(args, m);
  ex.device.ops().decode_gemm(ex, d);
}

}  // namespace

void matmul(Exec& ex, const Matmul& m) {
  const Operands args(ex, "matmul");
  check_and_count(args, m);
  ex.device.ops().matmul(ex, m);
}

void decode_gemm(Exec& ex, const DecodeGemm& d) {
  if (!d.norm.present()) return run_decode_gemm(ex, d);
  ArenaScope scope(ex.scratch);
  const ConstTensor& x = d.gemm.a;
  const DType sums = accumulation_of(x.dtype);
  // Allocated whether or not the backend fuses the norm, so that the plan does not depend on it.
  const Tensor normed = ex.scratch.allocate(x.shape, x.dtype, "decode_gemm.normed");
  const Tensor rstd = ex.scratch.allocate({x.rows()}, sums, "decode_gemm.rstd");
  const bool has_mean = d.norm.kind == NormKind::LayerNorm;
  const Tensor mean =
      has_mean ? ex.scratch.allocate({x.rows()}, sums, "decode_gemm.mean") : Tensor{};
  if (ex.device.ops().can_fuse_norm(ex, d)) return run_decode_gemm(ex, d);
  norm(ex, {.kind = d.norm.kind,
            .x = x,
            .weight = d.norm.weight,
            .bias = d.norm.bias,
            .eps = d.norm.eps,
            .y = normed,
            .mean = mean,
            .rstd = rstd});
  DecodeGemm plain{.gemm = d.gemm};
  plain.gemm.a = normed;
  run_decode_gemm(ex, plain);
}

}  // namespace bev::ops
