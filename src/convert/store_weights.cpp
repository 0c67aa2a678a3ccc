#include "convert/store_weights.h"

#include <algorithm>

#include "base/check.h"
#include "checkpoint/safetensors.h"

namespace bev {

StoreWeights::StoreWeights(const ParamStore& params) : params_(params) {
  for (const Param* param : params.distinct())
    BEV_CHECK(param->value.shape == param->spec.shape, Internal,
              "{} is cut over ranks; only a whole model can be saved in Hugging Face's format",
              param->spec.name);
}

const Param& StoreWeights::param(const ParamSpec& spec) const {
  const auto found = std::find_if(params_.distinct().begin(), params_.distinct().end(),
                                  [&](const Param* p) { return p->spec.name == spec.name; });
  BEV_CHECK(found != params_.distinct().end(), Internal, "the store has no parameter {}",
            spec.name);
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
