// Walking through a tensor that is too large for memory.
#pragma once

#include "base/function_ref.h"
#include "tensor/rectangle.h"

namespace bev {

// Cuts a rectangle into blocks of at most `most` elements that follow each other in row-major
// order: of whole rows, or of parts of one row where a row is longer. REQUIRES: most >= 1.
inline void for_each_block(const Rectangle& all, int64_t most,
                           FunctionRef<void(const Rectangle&)> f) {
  const int64_t columns = std::min(all.columns, most);
  const int64_t rows =
      columns == all.columns ? std::max<int64_t>(1, most / std::max<int64_t>(1, columns)) : 1;
  for (int64_t row = all.row; row < all.row_end(); row += rows)
    for (int64_t column = all.column; column < all.column_end(); column += columns)
      f({.row = row,
         .column = column,
         .rows = std::min(rows, all.row_end() - row),
         .columns = std::min(columns, all.column_end() - column)});
}

}  // namespace bev
