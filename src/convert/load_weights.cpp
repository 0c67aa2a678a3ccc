#include "convert/load_weights.h"

#include <cstring>
#include <vector>

namespace bev {

namespace {

// The part of the whole parameter that a piece is.
Rectangle place_of(const Piece& piece, const Shape& whole, const Shape& local) {
  const Rectangle all = whole_of(whole);
  if (piece.dim == 0)
    return {.row = piece.logical_begin, .rows = piece.extent, .columns = all.columns};
  return {.column = piece.logical_begin, .rows = local[0], .columns = piece.extent};
}

void load_parameter(WeightSource& source, const ParamStore& params, const Param& param) {
  const Shape& local = param.value.shape;
  const int64_t local_columns = whole_of(local).columns;
  const size_t size = size_of(params.dtype());
  std::vector<std::byte> values(static_cast<size_t>(local.elements()) * size), part;
  for (const Piece& piece : pieces(param.spec, params.grid(), params.rank())) {
    const Rectangle where = place_of(piece, param.spec.shape, local);
    const size_t row_bytes = static_cast<size_t>(where.columns) * size;
    const int64_t begin = piece.dim == 0 ? piece.local_begin * local_columns : piece.local_begin;
    part.resize(static_cast<size_t>(where.rows) * row_bytes);
    source.read(param.spec, where, params.dtype(), part.data());
    for (int64_t row = 0; row < where.rows; ++row)
      std::memcpy(values.data() + static_cast<size_t>(begin + row * local_columns) * size,
                  part.data() + static_cast<size_t>(row) * row_bytes, row_bytes);
  }
  params.device().upload(values.data(), param.value.data, values.size());
}

}  // namespace

void load_weights(WeightSource& source, ParamStore& params) {
  for (const Param* param : params.distinct()) {
    (void)source.dtype_of(param->spec);
    if (param->value.data != nullptr) load_parameter(source, params, *param);
  }
}

}  // namespace bev
