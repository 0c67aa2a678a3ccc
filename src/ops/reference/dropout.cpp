#include "ops/dropout.h"

#include "base/philox.h"
#include "ops/op_table.h"
#include "ops/reference/at.h"
#include "ops/reference/scalar.h"

namespace bev::reference {

double dropout_factor(const ops::Dropout& dropout, int64_t r, int64_t c) {
  if (dropout.probability == 0) return 1;
  const auto logical_row = static_cast<uint64_t>(element<int64_t>(dropout.rows, r));
  const auto column = static_cast<uint64_t>(dropout.column_begin + c);
  const uint32_t draw = philox(dropout.key, logical_row, column / 4)[column % 4];
  return draw < ops::dropout_threshold(dropout.probability) ? 0 : 1 / (1 - dropout.probability);
}

void dropout(Exec&, const ops::DropoutApply& d) {
  require_f64("dropout", d.x.dtype);
  for (int64_t r = 0; r < d.x.rows(); ++r) {
    for (int64_t c = 0; c < d.x.shape[1]; ++c) {
      at(d.y, r, c) = dropout_factor(d.dropout, r, c) * at(d.x, r, c);
    }
  }
}

void residual_add(Exec&, const ops::ResidualAdd& a) {
  require_f64("residual_add", a.residual.dtype);
  for (int64_t r = 0; r < a.out.rows(); ++r) {
    for (int64_t c = 0; c < a.out.shape[1]; ++c) {
      at(a.out, r, c) = at(a.residual, r, c) + dropout_factor(a.dropout, r, c) * at(a.delta, r, c);
    }
  }
}

}  // namespace bev::reference
