// One runtime dtype -> one template instance.
#pragma once

#include "base/check.h"
#include "tensor/dtype.h"

namespace bev {

// Calls f.template operator()<T>() for a floating dtype. `op` is named when the dtype is not one of
// the types a backend offers.
template <class F>
void visit_floating(DType dtype, const char* op, F&& f) {
  switch (dtype) {
    case DType::f64: f.template operator()<double>(); return;
    case DType::f32: f.template operator()<float>(); return;
    case DType::bf16: f.template operator()<bf16>(); return;
    case DType::f16: f.template operator()<f16>(); return;
    default: break;
  }
  throw Error(ErrorKind::Usage, format("{}: dtype {} is not a floating type", op, name_of(dtype)));
}

// The dtypes of the cpu backend: f32 and bf16 storage.
template <class F>
void visit_cpu(DType dtype, const char* op, F&& f) {
  switch (dtype) {
    case DType::f32: f.template operator()<float>(); return;
    case DType::bf16: f.template operator()<bf16>(); return;
    default: break;
  }
  throw Error(ErrorKind::Usage,
              format("{}: the cpu device has f32 and bf16, not {}; the reference device has f64",
                     op, name_of(dtype)));
}

}  // namespace bev
