#include "ops/relative_bias.h"

#include "ops/cpu/parallel_loops.h"
#include "ops/op_table.h"
#include "tensor/dtype_dispatch.h"

namespace bev::cpu {

// A row of the bias is a run of equal values for every bucket that it meets.
void relative_bias(Exec& ex, const ops::RelativeBias& r) {
  visit_cpu(r.table.dtype, "relative_bias", [&]<class T>() {
    const ops::RelativeBuckets rule(r.table.shape[0], r.positions.max_distance,
                                    r.positions.bidirectional);
    const RowsOf<const T> table(r.table);
    const RowsOf<T> bias(r.bias);
    const int64_t queries = r.bias.shape[1], keys = r.bias.shape[2];
    threads_of(ex).split(bias.count(), grain_rows(keys), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t head = row / queries;
        const int64_t position = row % queries + r.positions.query_offset;
        for (int64_t j = 0; j < keys;) {
          const int bucket = rule.bucket(j - position);
          const int64_t last = std::min(keys, position + rule.relative_positions(bucket).end);
          std::fill(bias[row] + j, bias[row] + last, table[bucket][head]);
          j = last;
        }
      }
    });
  });
}

// A bucket of a head is a task: its pairs are a run of keys of every query.
void relative_bias_backward(Exec& ex, const ops::RelativeBiasBackward& r) {
  BEV_CHECK(r.dbias.dtype == DType::f32, Usage, "relative_bias_backward: the cpu device has f32");
  const int64_t buckets = r.dtable.shape[0], heads = r.dtable.shape[1];
  const int64_t queries = r.dbias.shape[1], keys = r.dbias.shape[2];
  const ops::RelativeBuckets rule(buckets, r.positions.max_distance, r.positions.bidirectional);
  const RowsOf<const float> dbias(r.dbias);
  const RowsOf<float> dtable(r.dtable);
  threads_of(ex).each(buckets * heads, [&](int64_t task, int) {
    const int64_t bucket = task / heads, head = task % heads;
    const auto range = rule.relative_positions(static_cast<int>(bucket));
    double sum = 0;
    for (int64_t i = 0; i < queries; ++i) {
      const int64_t position = i + r.positions.query_offset;
      const float* row = dbias[head * queries + i];
      const int64_t end = std::min(keys, position + range.end);
      for (int64_t j = std::max<int64_t>(0, position + range.first); j < end; ++j) {
        sum += static_cast<double>(row[j]);
      }
    }
    dtable[bucket][head] += static_cast<float>(sum);
  });
}

}  // namespace bev::cpu
