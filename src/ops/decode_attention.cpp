#include "ops/decode_attention.h"

#include "ops/op_table.h"
#include "ops/operands.h"

namespace bev::ops {

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

void cache_write(Exec& ex, const CacheWrite& c) {
  const Operands args(ex, "cache_write");
  check_cache(args, c.keys, c.values, c.k);
  args.read("k", c.k, c.k.shape, c.k.dtype);
  args.read("v", c.v, c.k.shape, c.k.dtype);
  args.read("places", c.places, {c.k.rows()}, DType::i32);
  args.count_bytes(2 * bytes_of(c.k));
  ex.device.ops().cache_write(ex, c);
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
  // The lengths are not known to the host: the most there may be.
  const auto most = static_cast<double>(sequences * d.pages.shape[1] * d.page);
  args.count_flops(4 * most * static_cast<double>(d.q.shape[1] * d.q.shape[2]));
  args.count_bytes(static_cast<size_t>(most) * static_cast<size_t>(2 * kv[1] * kv[2]) *
                   size_of(d.k.dtype));
  ex.device.ops().decode_attention(ex, d);
}

}  // namespace bev::ops
