#include "ops/cross_entropy.h"

#include "ops/op_table.h"
#include "ops/operands.h"

namespace bev::ops {

void softmax_stats(Exec& ex, const SoftmaxStats& s) {
  const Operands args(ex, "softmax_stats");
  args.rank("logits", s.logits, 2);
  args.floating("logits", s.logits);
  const int64_t rows = s.logits.rows();
  args.require(s.logits.shape[1] > 0, "there are no columns");
  args.read("logits", s.logits, s.logits.shape, s.logits.dtype);
  args.read("targets", s.targets, {rows}, DType::i32);
  args.write("stats", s.stats, {rows, kSoftmaxStats}, accumulation_of(s.logits.dtype));
  ex.device.ops().softmax_stats(ex, s);
}

void merge_softmax_stats(Exec& ex, const MergeSoftmaxStats& m) {
  const Operands args(ex, "merge_softmax_stats");
  args.rank("parts", m.parts, 2);
  args.rank("stats", m.stats, 2);
  const int64_t rows = m.stats.shape[0];
  args.require(rows > 0 && m.parts.shape[0] % rows == 0 && m.parts.shape[0] > 0,
               "the parts are not several times the rows");
  args.read("parts", m.parts, {m.parts.shape[0], kSoftmaxStats}, m.stats.dtype);
  args.write("stats", m.stats, {rows, kSoftmaxStats}, accumulation_of(m.stats.dtype));
  ex.device.ops().merge_softmax_stats(ex, m);
}

void cross_entropy(Exec& ex, const CrossEntropy& c) {
  const Operands args(ex, "cross_entropy");
  args.rank("logits", c.logits, 2);
  args.floating("logits", c.logits);
  const Shape& shape = c.logits.shape;
  const DType dtype = c.logits.dtype;
  const DType sums = accumulation_of(dtype);
  args.require(c.column_begin >= 0 && c.column_begin + shape[1] <= c.classes,
               "the columns reach beyond the classes");
  args.check("logits", c.logits, shape, dtype);
  if (c.stats.present()) {
    args.read("stats", c.stats, {shape[0], kSoftmaxStats}, sums);
  } else {
    args.require(shape[1] > 0, "there are no columns");
    args.require(c.column_begin == 0 && shape[1] == c.classes,
                 "there are no statistics, and not all classes are here");
  }
  args.read("targets", c.targets, {shape[0]}, DType::i32);
  args.read("weight", c.weight, {shape[0]}, DType::f32);
  args.write("loss", c.loss, {shape[0]}, sums);
  if (c.grad_scale.present()) args.read("grad_scale", c.grad_scale, {1}, DType::f64);
  // The loss comes from the statistics: where they are given, only the gradient needs the logits.
  if (!c.stats.present() || c.dlogits.present()) args.count_bytes(bytes_of(c.logits));
  if (c.dlogits.present()) args.write("dlogits", c.dlogits, shape, dtype);
  ex.device.ops().cross_entropy(ex, c);
}

void top_k_hits(Exec& ex, const TopKHits& t) {
  const Operands args(ex, "top_k_hits");
  args.rank("logits", t.logits, 2);
  args.floating("logits", t.logits);
  args.require(t.k > 0, "k is not above 0");
  const int64_t rows = t.logits.rows();
  args.read("logits", t.logits, t.logits.shape, t.logits.dtype);
  args.read("targets", t.targets, {rows}, DType::i32);
  args.write("hits", t.hits, {rows}, accumulation_of(t.logits.dtype));
  ex.device.ops().top_k_hits(ex, t);
}

}  // namespace bev::ops
