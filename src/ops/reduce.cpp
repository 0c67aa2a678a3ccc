#include "ops/reduce.h"

#include "ops/op_table.h"
#include "ops/operands.h"

namespace bev::ops {

void squared_norm(Exec& ex, const SquaredNorm& s) {
  const Operands args(ex, "squared_norm");
  args.require(s.x.present(), "x is absent");
  args.floating("x", s.x);
  args.contiguous("x", s.x);
  args.read("x", s.x, s.x.shape, s.x.dtype);
  args.update("out", s.out, {1}, DType::f64);
  ex.device.ops().squared_norm(ex, s);
}

void weighted_sum(Exec& ex, const WeightedSum& s) {
  const Operands args(ex, "weighted_sum");
  args.rank("x", s.x, 1);
  args.floating("x", s.x);
  args.read("x", s.x, s.x.shape, accumulation_of(s.x.dtype));
  args.read("weight", s.weight, s.x.shape, DType::f32);
  if (s.scale.present()) args.read("scale", s.scale, {1}, DType::f64);
  args.update("out", s.out, {2}, DType::f64);
  ex.device.ops().weighted_sum(ex, s);
}

void hash_bits(Exec& ex, const HashBits& h) {
  const Operands args(ex, "hash_bits");
  args.require(h.x.present(), "x is absent");
  args.contiguous("x", h.x);
  args.read("x", h.x, h.x.shape, h.x.dtype);
  args.update("out", h.out, {1}, DType::i64);
  ex.device.ops().hash_bits(ex, h);
}

void combine(Exec& ex, const Combine& c) {
  const Operands args(ex, "combine");
  args.require(!c.parts.empty() && c.parts.size() <= kMostCombined, "1 to 256 parts");
  args.floating("out", c.out);
  args.contiguous("out", c.out);
  args.write("out", c.out, c.out.shape, c.out.dtype);
  for (const ConstTensor& part : c.parts) {
    args.contiguous("part", part);
    args.read("part", part, c.out.shape, c.out.dtype);
  }
  ex.device.ops().combine(ex, c);
}

}  // namespace bev::ops
