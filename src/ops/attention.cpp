#include "ops/attention.h"

#include <algorithm>

#include "ops/op_table.h"
#include "ops/operands.h"

namespace bev::ops {

namespace {

struct AttentionExtents {
  int64_t queries, keys, heads, kv_heads, head_dim;  // queries and keys of all sequences
  DType dtype;
};

Shape lse_shape(int64_t sequences, const AttentionExtents& size) {
  return {sequences, size.heads, size.queries / sequences};
}

// Pairs of one sequence that causality and the window leave; what mask tensors hide is not known to
// the host.
double visible_pairs(const AttentionMask& mask, int64_t queries, int64_t keys) {
  int64_t pairs = 0;
  for (int64_t i = 0; i < queries; ++i) {
    const int64_t position = i + mask.query_offset;
    const int64_t end = mask.causal ? std::min(keys, position + 1) : keys;
    const int64_t begin = mask.window > 0 ? std::max<int64_t>(0, position - mask.window + 1) : 0;
    pairs += std::max<int64_t>(0, end - begin);
  }
  return static_cast<double>(pairs);
}

double forward_flops(const AttentionMask& mask, int64_t sequences, const AttentionExtents& size) {
  const double pairs = visible_pairs(mask, size.queries / sequences, size.keys / sequences);
  return 4 * pairs * static_cast<double>(sequences * size.heads * size.head_dim);
}

// What the forward and the backward both read.
template <class Args>
AttentionExtents check_inputs(const Operands& args, const Args& a) {
  args.rank("q", a.q, 3);
  args.rank("k", a.k, 3);
  args.floating("q", a.q);
  const AttentionExtents size{a.q.shape[0], a.k.shape[0], a.q.shape[1],
                     a.k.shape[1], a.q.shape[2], a.q.dtype};
  const Shape kv{size.keys, size.kv_heads, size.head_dim};
  args.read("q", a.q, a.q.shape, size.dtype);
  args.read("k", a.k, kv, size.dtype);
  args.read("v", a.v, kv, size.dtype);
  args.require(size.kv_heads > 0 && size.heads % size.kv_heads == 0,
               "heads are not a multiple of kv_heads");
  args.require(a.sequences > 0 && size.queries % a.sequences == 0 && size.keys % a.sequences == 0,
               "queries or keys are not a multiple of sequences");
  args.require(a.mask.window >= 0, "the window is negative");
  if (a.mask.first_visible.present()) {
    args.read("mask.first_visible", a.mask.first_visible, {size.queries}, DType::i32);
  }
  if (a.mask.key_visible.present()) {
    args.read("mask.key_visible", a.mask.key_visible, {size.keys}, DType::i32);
  }
  args.require(a.dropout.probability >= 0 && a.dropout.probability < 1,
               "dropout probability outside [0, 1)");
  if (a.dropout.probability > 0) {
    args.read("dropout.rows", a.dropout.rows, {size.queries}, DType::i64);
  }
  return size;
}

}  // namespace

void attention(Exec& ex, const Attention& a) {
  const Operands args(ex, "attention");
  const AttentionExtents size = check_inputs(args, a);
  args.write("out", a.out, a.q.shape, size.dtype);
  args.write("lse", a.lse, lse_shape(a.sequences, size), accumulation_of(size.dtype));
  if (ex.cost != nullptr) args.count_flops(forward_flops(a.mask, a.sequences, size));
  ex.device.ops().attention(ex, a);
}

void attention_backward(Exec& ex, const AttentionBackward& a) {
  const Operands args(ex, "attention_backward");
  const AttentionExtents size = check_inputs(args, a);
  args.read("dout", a.dout, a.q.shape, size.dtype);
  args.read("out", a.out, a.q.shape, size.dtype);
  args.read("lse", a.lse, lse_shape(a.sequences, size), accumulation_of(size.dtype));
  args.write("dq", a.dq, a.q.shape, size.dtype);
  args.write("dk", a.dk, a.k.shape, size.dtype);
  args.write("dv", a.dv, a.k.shape, size.dtype);
  // Five products instead of two: the scores once more, dA, dv, dq, dk.
  if (ex.cost != nullptr) args.count_flops(2.5 * forward_flops(a.mask, a.sequences, size));
  ex.device.ops().attention_backward(ex, a);
}

}  // namespace bev::ops
