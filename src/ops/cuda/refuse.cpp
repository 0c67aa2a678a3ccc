#include "base/check.h"
#include "tensor/dtype.h"

namespace bev::cuda {

[[noreturn]] void refuse_dtype(const char* op, DType dtype) {
  throw Error(
      ErrorKind::Usage,
      format("{}: the cuda device has f32, bf16 and f16, not {}; the reference device has f64", op,
             name_of(dtype)));
}

}  // namespace bev::cuda
