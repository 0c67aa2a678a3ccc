#include "ops/embedding.h"

#include "ops/op_table.h"
#include "ops/operands.h"

namespace bev::ops {

void embedding(Exec& ex, const Embedding& e) {
  const Operands args(ex, "embedding");
  args.rank("table", e.table, 2);
  args.rank("out", e.out, 2);
  args.floating("table", e.table);
  args.check("table", e.table, e.table.shape, e.table.dtype);
  const Shape out{e.out.shape[0], e.table.shape[1]};
  args.read("ids", e.ids, {e.out.shape[0]}, DType::i32);
  if (e.accumulate) {
    args.update("out", e.out, out, e.table.dtype);
  } else {
    args.write("out", e.out, out, e.table.dtype);
  }
  args.count_bytes(bytes_of(e.out));  // one row of the table per token
  ex.device.ops().embedding(ex, e);
}

void embedding_backward(Exec& ex, const EmbeddingBackward& e) {
  const Operands args(ex, "embedding_backward");
  args.rank("dout", e.dout, 2);
  args.rank("dtable", e.dtable, 2);
  args.floating("dout", e.dout);
  const bool is_short = e.dtable.dtype == e.dout.dtype;
  const DType sums = is_short ? e.dout.dtype : accumulation_of(e.dout.dtype);
  args.read("dout", e.dout, e.dout.shape, e.dout.dtype);
  args.read("ids", e.ids, {e.dout.shape[0]}, DType::i32);
  args.check("dtable", e.dtable, {e.dtable.shape[0], e.dout.shape[1]}, sums);
  // One row of dtable per token is read and written.
  args.count_bytes(2 * static_cast<size_t>(e.dout.shape.elements()) * size_of(sums));
  ex.device.ops().embedding_backward(ex, e);
}

}  // namespace bev::ops
