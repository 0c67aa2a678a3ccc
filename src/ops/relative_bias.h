// The additive bias of attention by relative position (Raffel et al. 2020, T5).
#pragma once

#include "device/exec.h"
#include "ops/relative_buckets.h"

namespace bev::ops {

// Key j is at position j, query i at position i + query_offset.
struct RelativePositions {
  int64_t max_distance = 128;
  bool bidirectional = true;  // keys after the query have buckets
  int64_t query_offset = 0;
};

// bias[h][i][j] = table[bucket][h] with the bucket of j - (i + query_offset) (relative_buckets.h).
// table [buckets, heads]: of the heads of this rank; bias [heads, queries, keys] in the dtype of
// the table.
struct RelativeBias {
  ConstTensor table;
  RelativePositions positions{};
  Tensor bias;
};
void relative_bias(Exec& ex, const RelativeBias& r);

// dtable[b][h] += the sum of dbias[h][i][j] over the pairs of bucket b, in a fixed order.
// dbias [heads, queries, keys], dtable [buckets, heads], both of the accumulation type.
struct RelativeBiasBackward {
  ConstTensor dbias;
  RelativePositions positions{};
  Tensor dtable;
};
void relative_bias_backward(Exec& ex, const RelativeBiasBackward& r);

}  // namespace bev::ops
