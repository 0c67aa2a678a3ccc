// ops::Dropout as its kernel takes it.
#pragma once

#include "ops/cpu/kernels/kernels.h"
#include "ops/elementwise.h"

namespace bev::cpu {

// The draws of local row `row` from local column `column` on. REQUIRES: probability > 0.
inline DropoutDraws draws_of(const ops::Dropout& d, int64_t row, int64_t column) {
  const auto* rows = reinterpret_cast<const int64_t*>(d.rows.data);
  return {.key = d.key,
          .row = static_cast<uint64_t>(rows[row]),
          .column = d.column_begin + column,
          .threshold = static_cast<uint32_t>(ops::dropout_threshold(d.probability)),
          .scale = static_cast<float>(1 / (1 - d.probability))};
}

// out = residual + dropout(delta) for one piece of a row.
template <class T>
void add_dropped(const T* residual, const T* delta, T* out, int64_t count, const ops::Dropout& d,
                 int64_t row, int64_t column) {
  if (d.probability > 0) {
    kernels_of<T>().dropout(delta, residual, out, count, draws_of(d, row, column));
  } else {
    kernels_of<T>().add(residual, delta, out, count);
  }
}

}  // namespace bev::cpu
