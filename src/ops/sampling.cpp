#include "ops/sampling.h"

#include "base/integer.h"
#include "ops/op_table.h"
#include "ops/operands.h"

namespace bev::ops {

void sample_tokens(Exec& ex, const SampleTokens& c) {
  const Operands args(ex, "sample_tokens");
  args.rank("logits", c.logits, 2);
  args.floating("logits", c.logits);
  const int64_t rows = c.logits.rows();
  args.require(c.classes > 0 && c.classes <= c.logits.shape[1], "classes beyond the columns");
  args.read("logits", c.logits, c.logits.shape, c.logits.dtype);
  args.contiguous("logits", c.logits);
  args.read("options", c.options, {rows, kChoiceColumns}, DType::f64);
  args.contiguous("options", c.options);
  args.read("keys", c.keys, {rows, 2}, DType::i64);
  args.contiguous("keys", c.keys);
  if (c.seen.present()) {
    args.update("seen", c.seen, {rows, div_ceil(c.classes, 32)}, DType::i32);
    args.contiguous("seen", c.seen);
  }
  args.write("ids", c.ids, {rows}, DType::i32);
  args.write("logprobs", c.logprobs, {rows}, accumulation_of(c.logits.dtype));
  ex.device.ops().sample_tokens(ex, c);
}

}  // namespace bev::ops
