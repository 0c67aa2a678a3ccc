#include "ops/relative_bias.h"

#include "ops/op_table.h"
#include "ops/reference/element.h"

namespace bev::reference {

namespace {

// Calls body(bucket, head, query, key) for every element of a [heads, queries, keys] bias.
template <class Body>
void each_bucketed(const ops::RelativePositions& p, int64_t buckets, const Shape& bias, Body body) {
  const ops::RelativeBuckets rule(buckets, p.max_distance, p.bidirectional);
  for (int64_t i = 0; i < bias[1]; ++i) {
    for (int64_t j = 0; j < bias[2]; ++j) {
      const int64_t bucket = rule.bucket(j - (i + p.query_offset));
      for (int64_t h = 0; h < bias[0]; ++h) body(bucket, h, i, j);
    }
  }
}

}  // namespace

void relative_bias(Exec&, const ops::RelativeBias& r) {
  require_f64("relative_bias", r.table.dtype);
  each_bucketed(r.positions, r.table.shape[0], r.bias.shape,
                [&](int64_t bucket, int64_t h, int64_t i, int64_t j) {
                  at(r.bias, h, i, j) = at(r.table, bucket, h);
                });
}

void relative_bias_backward(Exec&, const ops::RelativeBiasBackward& r) {
  require_f64("relative_bias_backward", r.dbias.dtype);
  each_bucketed(r.positions, r.dtable.shape[0], r.dbias.shape,
                [&](int64_t bucket, int64_t h, int64_t i, int64_t j) {
                  at(r.dtable, bucket, h) += at(r.dbias, h, i, j);
                });
}

}  // namespace bev::reference
