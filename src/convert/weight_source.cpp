#include "convert/weight_source.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "checkpoint/safetensors.h"

namespace bev {

namespace {

void load_parameter(WeightSource& source, const ParamStore& params, const Param& param) {
  const Shape& local = param.value.shape;
  const int64_t local_columns = whole_of(local).columns;
  const size_t size = size_of(params.dtype());
  std::vector<std::byte> values(static_cast<size_t>(local.elements()) * size), part;
  for (const Piece& piece : param.pieces) {
    const Rectangle& where = piece.logical;
    const size_t row_bytes = static_cast<size_t>(where.columns) * size;
    const int64_t begin = piece.local_row * local_columns + piece.local_column;
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
  for (const Param* param : params.all()) {
    (void)source.dtype_of(param->spec);
    if (param->value.data != nullptr) load_parameter(source, params, *param);
  }
}

StoreWeights::StoreWeights(const ParamStore& params) : params_(params) {
  for (const Param* param : params.all())
    BEV_CHECK(param->value.shape == param->spec.shape, Internal,
              "{} is cut over ranks; only a whole model can be saved in Hugging Face's format",
              param->spec.name);
}

const Param& StoreWeights::param(const ParamSpec& spec) const {
  const auto found = std::find_if(params_.all().begin(), params_.all().end(),
                                  [&](const Param* p) { return p->spec.name == spec.name; });
  BEV_CHECK(found != params_.all().end(), Internal, "the store has no parameter {}", spec.name);
  return **found;
}

DType StoreWeights::dtype_of(const ParamSpec& spec) { return param(spec).value.dtype; }

void StoreWeights::read(const ParamSpec& spec, const Rectangle& where, DType dtype, std::byte* to) {
  const Tensor& value = param(spec).value;
  const int64_t columns = whole_of(value.shape).columns;
  const size_t size = size_of(value.dtype), row_bytes = static_cast<size_t>(columns) * size;
  std::vector<std::byte> rows(static_cast<size_t>(where.rows) * row_bytes);
  params_.device().download(value.data + static_cast<size_t>(where.row) * row_bytes, rows.data(),
                            rows.size());
  const size_t count = static_cast<size_t>(where.columns);
  for (size_t row = 0; row < static_cast<size_t>(where.rows); ++row)
    convert_elements(
        {rows.data() + row * row_bytes + static_cast<size_t>(where.column) * size, count * size},
        value.dtype, {to + row * count * size_of(dtype), count * size_of(dtype)}, dtype);
}

}  // namespace bev
