// What the backward of attention needs of each query before it looks at keys.
#pragma once

#include "ops/attention.h"

namespace bev::cuda {

// In the order of lse: [sequences, heads, queries].
struct QuerySums {
  float lse2;   // lse * log2(e); +infinity for a query that sees no key, so that its P is 0
  float delta;  // sum(dout * out)
};

inline size_t query_sums_bytes(const ops::AttentionBackward& a) {
  return static_cast<size_t>(a.q.shape[0] * a.q.shape[1]) * sizeof(QuerySums);
}

void compute_query_sums(Exec& ex, const ops::AttentionBackward& a, QuerySums* rows);

}  // namespace bev::cuda
