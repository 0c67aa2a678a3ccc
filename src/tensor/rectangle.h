// A part of a logical tensor. A tensor of any rank is seen as a matrix: its first extent are the
// rows, the product of the others the columns.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/function_ref.h"
#include "tensor/tensor.h"

namespace bev {

struct Rectangle {
  int64_t row = 0, column = 0;  // the first ones
  int64_t rows = 0, columns = 0;

  int64_t elements() const { return rows * columns; }
  int64_t row_end() const { return row + rows; }
  int64_t column_end() const { return column + columns; }
  // Where an element lies among those of the rectangle, row by row.
  int64_t index_of(int64_t in_row, int64_t in_column) const {
    return (in_row - row) * columns + in_column - column;
  }
  bool operator==(const Rectangle&) const = default;
};

// A scalar has one row of one column.
inline Rectangle whole_of(const Shape& shape) {
  const int64_t rows = shape.rank() == 0 ? 1 : shape[0];
  return {.rows = rows, .columns = rows == 0 ? 0 : shape.elements() / rows};
}

// Without elements where they do not meet.
inline Rectangle intersection(const Rectangle& a, const Rectangle& b) {
  const int64_t row = std::max(a.row, b.row), column = std::max(a.column, b.column);
  return {.row = row,
          .column = column,
          .rows = std::max<int64_t>(0, std::min(a.row_end(), b.row_end()) - row),
          .columns = std::max<int64_t>(0, std::min(a.column_end(), b.column_end()) - column)};
}

// Walking through a tensor that is too large for memory.

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
