#include "optim/grad_buffer.h"

#include <algorithm>

#include "base/check.h"
#include "ops/elementwise.h"

namespace bev {

DType GradBuffer::dtype_of(const Param& param) const {
  const bool is_short = precision_ == StatePrecision::Bf16 && param.spec.is_matrix();
  return is_short ? DType::bf16 : accumulation_of(params_.dtype());
}

GradBuffer::GradBuffer(ParamStore& params, StatePrecision precision)
    : params_(params), precision_(precision) {
  size_t bytes = 0;
  for (const FlatPlace& place : params.flat()) {
    const DType dtype = dtype_of(*place.param);
    bytes += static_cast<size_t>(place.count) * size_of(dtype);
    if (!flat_.empty() && flat_.back().dtype == dtype) {
      flat_.back().shape.set(0, flat_.back().shape[0] + place.count);
    } else {
      flat_.push_back(tensor_over(static_cast<std::byte*>(nullptr), dtype, {place.count}));
      begins_.push_back(place.begin);
    }
  }
  buffer_ = Buffer(params.device(), bytes, "gradients");
  std::byte* data = buffer_.data();
  for (Tensor& part : flat_) {
    part.data = data;
    if (data != nullptr) data += bytes_of(part);
  }
  for (const FlatPlace& place : params.flat()) {
    const Shape& shape = place.param->value.shape;
    const Tensor flat = range(place.begin, shape.elements());
    place.param->grad = tensor_over(flat.data, flat.dtype, shape);
  }
  const auto vector = std::find_if(params.flat().begin(), params.flat().end(),
                                   [](const FlatPlace& p) { return !p.param->spec.is_matrix(); });
  if (vector != params.flat().end())
    vectors_ = range(vector->begin, params.flat_elements() - vector->begin);
}

Tensor GradBuffer::range(int64_t begin, int64_t count) const {
  const auto after = std::upper_bound(begins_.begin(), begins_.end(), begin);
  BEV_CHECK(after != begins_.begin(), Internal, "no gradient at {}", begin);
  const auto part = static_cast<size_t>(after - begins_.begin() - 1);
  return slice(flat_[part], 0, begin - begins_[part], count);
}

void GradBuffer::begin_step(Exec& ex) {
  for (Param* param : params_.distinct()) {
    param->grad_started = !param->spec.is_matrix();
  }
  if (vectors_.present()) ops::fill(ex, {.out = vectors_, .value = 0});
}

}  // namespace bev
