#include "ops/embedding.h"

#include <cstring>

#include "ops/cpu/kernels/kernels.h"
#include "ops/cpu/parallel_loops.h"
#include "ops/op_table.h"
#include "tensor/dtype_dispatch.h"

namespace bev::cpu {

namespace {

// Columns are dealt to threads by the cache line of dtable.
constexpr int64_t kEmbeddingColumns = 16;

}  // namespace

void embedding(Exec& ex, const ops::Embedding& e) {
  visit_cpu(e.table.dtype, "embedding", [&]<class T>() {
    const RowsOf<const T> table(e.table);
    const RowsOf<T> out(e.out);
    const auto* ids = reinterpret_cast<const int32_t*>(e.ids.data);
    each_piece(ex, out.count(), width_of(e.out), [&](int64_t token, int64_t begin, int64_t end) {
      const int64_t id = ids[token] - e.row_begin;
      const bool held = id >= 0 && id < table.count();
      const auto bytes = static_cast<size_t>(end - begin) * sizeof(T);
      T* row = out[token] + begin;
      if (held && e.accumulate) {
        kernels_of<T>().add(row, table[id] + begin, row, end - begin);
      } else if (held) {
        std::memcpy(row, table[id] + begin, bytes);
      } else if (!e.accumulate) {
        std::memset(static_cast<void*>(row), 0, bytes);
      }
    });
  });
}

// Threads own columns, so that each sum runs over the tokens in order without atomics.
void embedding_backward(Exec& ex, const ops::EmbeddingBackward& e) {
  visit_cpu(e.dout.dtype, "embedding_backward", [&]<class T>() {
    const RowsOf<const T> dout(e.dout);
    const RowsOf<float> dtable(e.dtable);
    const auto* ids = reinterpret_cast<const int32_t*>(e.ids.data);
    const int64_t width = width_of(e.dout);
    const int64_t units = (width + kEmbeddingColumns - 1) / kEmbeddingColumns;
    const int64_t grain = grain_rows(dout.count() * kEmbeddingColumns);
    threads_of(ex).split(units, grain, [&](int64_t unit_begin, int64_t unit_end) {
      const int64_t begin = unit_begin * kEmbeddingColumns;
      const int64_t end = std::min(width, unit_end * kEmbeddingColumns);
      for (int64_t token = 0; token < dout.count(); ++token) {
        const int64_t id = ids[token] - e.row_begin;
        if (id < 0 || id >= dtable.count()) continue;
        kernels_of<T>().accumulate(dout[token] + begin, dtable[id] + begin, end - begin);
      }
    });
  });
}

}  // namespace bev::cpu
