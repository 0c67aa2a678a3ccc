#include "optim/grad_buffer.h"

#include "ops/elementwise.h"

namespace bev {

GradBuffer::GradBuffer(ParamStore& params)
    : params_(params),
      buffer_(
          params.device(),
          static_cast<size_t>(params.flat_elements()) * size_of(accumulation_of(params.dtype())),
          "gradients") {
  const DType dtype = accumulation_of(params.dtype());
  flat_ = tensor_over(buffer_.data(), dtype, {params.flat_elements()});
  for (Param* param : params.distinct()) {
    const auto offset = static_cast<size_t>(params.flat_offset(*param)) * size_of(dtype);
    std::byte* data = buffer_.data() != nullptr ? buffer_.data() + offset : nullptr;
    param->grad = tensor_over(data, dtype, param->value.shape);
  }
}

void GradBuffer::begin_step(Exec& ex) {
  for (Param* param : params_.distinct()) {
    param->grad_started = param->spec.shape.rank() < 2;
    if (param->grad_started) ops::fill(ex, {.out = param->grad, .value = 0});
  }
}

}  // namespace bev
