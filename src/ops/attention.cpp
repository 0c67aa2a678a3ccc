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

Shape bias_shape(int64_t sequences, const AttentionExtents& size) {
  return {size.heads, size.queries / sequences, size.keys / sequences};
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

// `gemms`: GEMMs that are executed, and those of the model. The model's see half of the square if
// causal; its diagonal and the window do not count (docs/performance.md).
void record_attention(const Operands& args, const AttentionMask& mask, int64_t sequences,
                      const AttentionExtents& size, double gemms, double model_gemms) {
  OpCost* const r = args.record();
  if (r == nullptr) return;
  const int64_t queries = size.queries / sequences, keys = size.keys / sequences;
  r->dims = {sequences, queries, size.heads, size.head_dim};
  const double each = 2 * static_cast<double>(sequences * size.heads * size.head_dim);
  const double square = static_cast<double>(queries) * static_cast<double>(keys);
  args.count_flops(gemms * each * visible_pairs(mask, queries, keys),
                   model_gemms * each * (mask.causal ? square / 2 : square));
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
  if (a.mask.document_start.present()) {
    args.read("mask.document_start", a.mask.document_start, {size.queries}, DType::i32);
  }
  if (a.mask.query_lengths.present()) {
    args.read("mask.query_lengths", a.mask.query_lengths, {a.sequences}, DType::i32);
  }
  if (a.mask.key_lengths.present()) {
    args.read("mask.key_lengths", a.mask.key_lengths, {a.sequences}, DType::i32);
  }
  args.require(a.dropout.probability >= 0 && a.dropout.probability < 1,
               "dropout probability outside [0, 1)");
  if (a.dropout.probability > 0) {
    args.read("dropout.rows", a.dropout.rows, {size.queries}, DType::i64);
  }
  if (a.bias.present()) args.read("bias", a.bias, bias_shape(a.sequences, size), size.dtype);
  return size;
}

}  // namespace

void attention(Exec& ex, const Attention& a) {
  const Operands args(ex, "attention");
  const AttentionExtents size = check_inputs(args, a);
  args.write("out", a.out, a.q.shape, size.dtype);
  args.write("lse", a.lse, lse_shape(a.sequences, size), accumulation_of(size.dtype));
  record_attention(args, a.mask, a.sequences, size, 2, 2);
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
  if (a.dbias.present()) {
    args.require(a.bias.present(), "dbias is given, but no bias");
    args.update("dbias", a.dbias, bias_shape(a.sequences, size), accumulation_of(size.dtype));
  }
  // dA, dv, dq, dk, and the scores, which are computed again.
  record_attention(args, a.mask, a.sequences, size, 5, 4);
  ex.device.ops().attention_backward(ex, a);
}

namespace {

void check_cache(const Operands& args, const Tensor& keys, const Tensor& values,
                 const ConstTensor& k) {
  args.rank("k", k, 3);
  args.floating("k", k);
  args.rank("keys", keys, 3);
  const Shape cache{keys.shape[0], k.shape[1], k.shape[2]};
  args.check("keys", keys, cache, k.dtype);
  args.check("values", values, cache, k.dtype);
  args.contiguous("keys", keys);
  args.contiguous("values", values);
}

}  // namespace

void kv_cache_write(Exec& ex, const KvCacheWrite& c) {
  const Operands args(ex, "kv_cache_write");
  check_cache(args, c.keys, c.values, c.k);
  args.read("k", c.k, c.k.shape, c.k.dtype);
  args.read("v", c.v, c.k.shape, c.k.dtype);
  args.read("places", c.places, {c.k.rows()}, DType::i32);
  args.count_bytes(2 * bytes_of(c.k));
  ex.device.ops().kv_cache_write(ex, c);
}

void decode_attention(Exec& ex, const DecodeAttention& d) {
  const Operands args(ex, "decode_attention");
  args.rank("q", d.q, 3);
  check_cache(args, d.keys, d.values, d.k);
  const int64_t sequences = d.q.rows();
  args.require(d.page > 0 && d.keys.rows() % d.page == 0, "the places are no whole pages");
  args.require(d.window >= 0, "the window is negative");
  const Shape kv{sequences, d.k.shape[1], d.q.shape[2]};
  args.read("q", d.q, d.q.shape, d.k.dtype);
  args.read("k", d.k, kv, d.k.dtype);
  args.read("v", d.v, kv, d.k.dtype);
  args.require(kv[1] > 0 && d.q.shape[1] % kv[1] == 0, "heads are not a multiple of kv_heads");
  args.read("lengths", d.lengths, {sequences}, DType::i32);
  args.rank("pages", d.pages, 2);
  args.read("pages", d.pages, {sequences, d.pages.shape[1]}, DType::i32);
  args.contiguous("pages", d.pages);
  args.write("out", d.out, d.q.shape, d.k.dtype);
  if (d.bias.present()) {
    args.rank("bias", d.bias, 2);
    args.read("bias", d.bias, {d.q.shape[1], d.bias.shape[1]}, d.k.dtype);
    args.require(d.bias.shape[1] >= d.pages.shape[1] * d.page,
                 "the bias has fewer columns than a sequence has places");
  }
  // The lengths are not known to the host: the most there may be.
  const auto most = static_cast<double>(sequences * d.pages.shape[1] * d.page);
  const double flops = 4 * most * static_cast<double>(d.q.shape[1] * d.q.shape[2]);
  args.count_flops(flops, flops);
  args.count_bytes(static_cast<size_t>(most) * static_cast<size_t>(2 * kv[1] * kv[2]) *
                   size_of(d.k.dtype));
  ex.device.ops().decode_attention(ex, d);
}

}  // namespace bev::ops
