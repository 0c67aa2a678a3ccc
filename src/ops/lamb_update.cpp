#include "ops/lamb_update.h"

#include "ops/op_table.h"
#include "ops/operands.h"

namespace bev::ops {

namespace {

DType stored_grad(const ConstTensor& grad, DType sums) {
  return grad.dtype == DType::bf16 ? DType::bf16 : sums;
}

void read_chunks(const Operands& args, const ConstTensor& chunks) {
  args.rank("chunks", chunks, 2);
  args.contiguous("chunks", chunks);
  args.read("chunks", chunks, {chunks.shape[0], kChunkFields}, DType::i64);
}

}  // namespace

void lamb_moments(Exec& ex, const LambMoments& a) {
  const Operands args(ex, "lamb_moments");
  args.rank("weights", a.weights, 1);
  args.floating("weights", a.weights);
  const Shape& shape = a.weights.shape;
  const DType sums = accumulation_of(a.weights.dtype);
  args.read("weights", a.weights, shape, sums);
  args.update("m", a.m, shape, sums);
  args.update("v", a.v, shape, sums);
  if (a.rule.has_noise) {
    args.update("q", a.q, shape, sums);
  } else {
    args.absent("q", a.q);
  }
  args.read("grad", a.grad, shape, stored_grad(a.grad, sums));
  args.read("decision", a.decision, {kUpdateDecisions}, DType::f64);
  read_chunks(args, a.chunks);
  args.contiguous("squares", a.squares);
  args.write("squares", a.squares, {a.chunks.shape[0], a.rule.has_noise ? 3 : 2}, DType::f64);
  ex.device.ops().lamb_moments(ex, a);
}

void sum_segments(Exec& ex, const SumSegments& s) {
  const Operands args(ex, "sum_segments");
  args.rank("x", s.x, 2);
  args.contiguous("x", s.x);
  args.read("x", s.x, s.x.shape, DType::f64);
  args.rank("segments", s.segments, 2);
  args.contiguous("segments", s.segments);
  args.read("segments", s.segments, {s.segments.shape[0], 2}, DType::i64);
  args.contiguous("out", s.out);
  args.write("out", s.out, {s.segments.shape[0], s.x.shape[1]}, DType::f64);
  ex.device.ops().sum_segments(ex, s);
}

void lamb_ratios(Exec& ex, const LambRatios& r) {
  const Operands args(ex, "lamb_ratios");
  args.rank("squares", r.squares, 2);
  args.contiguous("squares", r.squares);
  const int64_t params = r.squares.shape[0], norms = r.squares.shape[1];
  args.require(norms == 2 || norms == kMostLambNorms, "squares has not 2 or 3 columns");
  args.read("squares", r.squares, r.squares.shape, DType::f64);
  args.require(r.whole.present() == (r.kind > TrustRatio::Shard),
               "norms over all tensor ranks belong to Whole, Mixed and Previous");
  if (r.whole.present()) {
    args.contiguous("whole", r.whole);
    args.read("whole", r.whole, r.squares.shape, DType::f64);
  }
  args.contiguous("params", r.params);
  args.read("params", r.params, {params, kLambParams}, DType::f64);
  args.read("decision", r.decision, {kUpdateDecisions}, DType::f64);
  if (r.kind == TrustRatio::Previous) args.update("previous", r.previous, {params}, DType::f64);
  args.require(r.tensor_ranks > 0, "tensor_ranks is not positive");
  args.contiguous("out", r.out);
  args.write("out", r.out, {params, 2}, DType::f64);
  ex.device.ops().lamb_ratios(ex, r);
}

void lamb_update(Exec& ex, const LambUpdate& a) {
  const Operands args(ex, "lamb_update");
  args.rank("param", a.param, 1);
  args.floating("param", a.param);
  const Shape& shape = a.param.shape;
  const DType sums = accumulation_of(a.param.dtype);
  if (a.master.present()) {
    args.write("param", a.param, shape, a.param.dtype);
    args.update("master", a.master, shape, sums);
  } else {
    args.update("param", a.param, shape, sums);
  }
  if (a.rule.has_noise) {
    args.update("m", a.m, shape, sums);
    args.read("q", a.q, shape, sums);
    args.read("grad", a.grad, shape, stored_grad(a.grad, sums));
  } else {
    args.read("m", a.m, shape, sums);
    args.absent("q", a.q);
    args.absent("grad", a.grad);
  }
  args.read("v", a.v, shape, sums);
  args.read("decision", a.decision, {kUpdateDecisions}, DType::f64);
  read_chunks(args, a.chunks);
  args.rank("ratios", a.ratios, 2);
  args.contiguous("ratios", a.ratios);
  // Each chunk reads a row: their number is no measure of the traffic.
  args.check("ratios", a.ratios, {a.ratios.shape[0], 2}, DType::f64);
  ex.device.ops().lamb_update(ex, a);
}

}  // namespace bev::ops
