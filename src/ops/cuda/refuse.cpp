#include "base/check.h"
#include "tensor/dtype.h"

namespace bev::cuda {

[[noreturn]] void refuse_dtype(const char* op, DType dtype) {
  throw Error(
      ErrorKind::Usage,
      format("{}: the cuda device has f32, bf16 and f16, not {}; the reference device has f64", op,
             name_of(dtype)));
}

[[noreturn]] void refuse_head_dim(const char* op, int64_t head_dim, int64_t most) {
  throw Error(
      ErrorKind::Usage,
      format("{}: the cuda device has heads of up to {} dims, not {}; the cpu device has any", op,
             most, head_dim));
}

}  // namespace bev::cuda
