#include "ops/combine.h"

#include "ops/op_table.h"
#include "ops/operands.h"

namespace bev::ops {

void combine(Exec& ex, const Combine& c) {
  const Operands args(ex, "combine");
  args.require(!c.parts.empty() && c.parts.size() <= kMostCombined, "1 to 256 parts");
  args.floating("out", c.out);
  args.contiguous("out", c.out);
  args.write("out", c.out, c.out.shape, c.out.dtype);
  for (const ConstTensor& part : c.parts) {
    args.contiguous("part", part);
    args.read("part", part, c.out.shape, c.out.dtype);
  }
  ex.device.ops().combine(ex, c);
}

}  // namespace bev::ops
