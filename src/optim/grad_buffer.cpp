#include "optim/grad_buffer.h"

#include <algorithm>

#include "base/check.h"
#include "ops/elementwise.h"

namespace bev {

DType GradBuffer::dtype_of(const Param& param) const {
  const bool is_short = precision_ == StatePrecision::Bf16 && param.spec.shape.rank() >= 2;
  return is_short ? DType::bf16 : accumulation_of(params_.dtype());
}

GradBuffer::GradBuffer(ParamStore& params, StatePrecision precision)
    : params_(params), precision_(precision) {
  const std::span<Param* const> all = params.distinct();
  size_t bytes = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const int64_t begin = params.flat_offset(*all[i]);
    const int64_t end =
        i + 1 < all.size() ? params.flat_offset(*all[i + 1]) : params.flat_elements();
    const DType dtype = dtype_of(*all[i]);
    bytes += static_cast<size_t>(end - begin) * size_of(dtype);
    if (!flat_.empty() && flat_.back().dtype == dtype) {
      flat_.back().shape.set(0, flat_.back().shape[0] + end - begin);
    } else {
      flat_.push_back(tensor_over(static_cast<std::byte*>(nullptr), dtype, {end - begin}));
      begins_.push_back(begin);
    }
  }
  buffer_ = Buffer(params.device(), bytes, "gradients");
  std::byte* data = buffer_.data();
  for (Tensor& part : flat_) {
    part.data = data;
    if (data != nullptr) data += bytes_of(part);
  }
  for (Param* param : all) {
    const Tensor flat = range(params.flat_offset(*param), param->value.shape.elements());
    param->grad = tensor_over(flat.data, flat.dtype, param->value.shape);
  }
}

Tensor GradBuffer::range(int64_t begin, int64_t count) const {
  const auto after = std::upper_bound(begins_.begin(), begins_.end(), begin);
  BEV_CHECK(after != begins_.begin(), Internal, "no gradient at {}", begin);
  const auto part = static_cast<size_t>(after - begins_.begin() - 1);
  return slice(flat_[part], 0, begin - begins_[part], count);
}

void GradBuffer::begin_step(Exec& ex) {
  for (Param* param : params_.distinct()) {
    param->grad_started = param->spec.shape.rank() < 2;
    if (param->grad_started) ops::fill(ex, {.out = param->grad, .value = 0});
  }
}

}  // namespace bev
