#include "ops/cuda/primitives/vector_rows.cuh"
#include "ops/embedding.h"
#include "ops/op_table.h"

namespace bev::cuda {

namespace {

constexpr int kThreads = 256;

template <class T>
__global__ void __launch_bounds__(kThreads)
    look_up_groups(Rows<const T> table, const int32_t* ids, int64_t row_begin, int64_t table_rows,
                   Rows<T> out, int64_t tokens, int64_t width, bool accumulate, bool wide) {
  each_group(tokens, width, [&](int64_t token, int64_t column) {
    const int64_t id = ids[token] - row_begin;
    const bool held = id >= 0 && id < table_rows;
    T* to = out[token];
    Group<T> group;
    if (held) group = load_group(table[id], column, width, wide);
    if (accumulate) {
      if (!held) return;
      const Group<T> before = load_group(to, column, width, wide);
      float sum[kGroup];
#pragma unroll
      for (int j = 0; j < kGroup; ++j) sum[j] = before[j] + group[j];
      group = Group<T>::of(sum);
    }
    store_group(group, to, column, width, wide);
  });
}

}  // namespace

void embedding(Exec& ex, const ops::Embedding& e) {
  const int64_t tokens = e.out.rows(), width = width_of(e.out);
  if (tokens * width == 0) return;
  const unsigned blocks = blocks_for(ex, tokens * ceil_div(width, kGroup), kThreads);
  visit_cuda(e.table.dtype, "embedding", [&]<class T>() {
    look_up_groups<T><<<blocks, kThreads, 0, stream_of(ex)>>>(
        Rows<const T>(e.table), data_of<int32_t>(e.ids), e.row_begin, e.table.rows(),
        Rows<T>(e.out), tokens, width, e.accumulate, are_wide(e.table, e.out));
  });
  check_launch("embedding");
}

}  // namespace bev::cuda
