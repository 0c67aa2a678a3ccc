#include "ops/embedding.h"

#include "ops/op_table.h"
#include "ops/reference/element.h"

namespace bev::reference {

void embedding(Exec&, const ops::Embedding& e) {
  require_f64("embedding", e.table.dtype);
  for (int64_t token = 0; token < e.out.shape[0]; ++token) {
    const int64_t id = element<int32_t>(e.ids, token) - e.row_begin;
    const bool held = id >= 0 && id < e.table.shape[0];
    for (int64_t c = 0; c < e.out.shape[1]; ++c) {
      const double value = held ? at(e.table, id, c) : 0;
      at(e.out, token, c) = e.accumulate ? at(e.out, token, c) + value : value;
    }
  }
}

void embedding_backward(Exec&, const ops::EmbeddingBackward& e) {
  require_f64("embedding_backward", e.dout.dtype);
  for (int64_t token = 0; token < e.dout.shape[0]; ++token) {
    const int64_t id = element<int32_t>(e.ids, token) - e.row_begin;
    if (id < 0 || id >= e.dtable.shape[0]) continue;
    for (int64_t c = 0; c < e.dout.shape[1]; ++c) at(e.dtable, id, c) += at(e.dout, token, c);
  }
}

}  // namespace bev::reference
