// The elements of pieces as runs without gaps, in local and in logical coordinates.
#pragma once

#include <span>

#include "param/param_spec.h"

namespace bev {

// Calls f(first local element, first logical element, count) for each run. `local` and `logical`:
// the shapes of the tensor as it is held and as a whole; the pieces lie along the first two dims.
template <class F>
void visit_runs(std::span<const Piece> pieces, const Shape& local, const Shape& logical, F&& f) {
  const int64_t columns = local.elements() / local[0];
  const int64_t all_columns = logical.elements() / logical[0];
  for (const Piece& piece : pieces) {
    if (piece.dim == 0) {
      f(piece.local_begin * columns, piece.logical_begin * all_columns, piece.extent * columns);
      continue;
    }
    for (int64_t row = 0; row < local[0]; ++row)
      f(row * columns + piece.local_begin, row * all_columns + piece.logical_begin, piece.extent);
  }
}

}  // namespace bev
