#include "ops/combine.h"

#include <algorithm>

#include "ops/op_table.h"
#include "ops/reference/at.h"

namespace bev::reference {

void combine(Exec&, const ops::Combine& c) {
  require_f64("combine", c.out.dtype);
  const int64_t count = c.out.shape.elements();
  const Tensor out = reshape(c.out, {count});
  for (int64_t i = 0; i < count; ++i) {
    double result = at(reshape(c.parts.front(), {count}), i);
    for (const ConstTensor& part : c.parts.subspan(1)) {
      const double value = at(reshape(part, {count}), i);
      switch (c.op) {
        case ReduceOp::Sum: result += value; break;
        case ReduceOp::Max: result = std::max(result, value); break;
        case ReduceOp::Min: result = std::min(result, value); break;
      }
    }
    at(out, i) = result;
  }
}

}  // namespace bev::reference
