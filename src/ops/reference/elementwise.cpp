#include "ops/elementwise.h"

#include <cstring>
#include <type_traits>

#include "ops/op_table.h"
#include "ops/reference/at.h"
#include "tensor/dtype_dispatch.h"

namespace bev::reference {

namespace {

// The short types round from float.
template <class T>
T from_double(double value) {
  if constexpr (std::is_same_v<T, bf16> || std::is_same_v<T, f16>) {
    return T(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

template <class From, class To>
void convert(const ConstTensor& in, const Tensor& out) {
  for (int64_t c = 0; c < in.shape[0]; ++c) {
    element<To>(out, c) = from_double<To>(static_cast<double>(element<From>(in, c)));
  }
}

template <class T>
void fill_row(const Tensor& out, double value) {
  for (int64_t c = 0; c < out.shape[0]; ++c) element<T>(out, c) = from_double<T>(value);
}

}  // namespace

// The one op with operands of every dtype: it is how other types are reached at all.
void copy(Exec&, const ops::Copy& c) {
  for (int64_t r = 0; r < row_count(c.in.shape); ++r) {
    const ConstTensor in = row(c.in, r);
    const Tensor out = row(c.out, r);
    if (in.dtype == out.dtype) {
      if (bytes_of(in) > 0) std::memmove(out.data, in.data, bytes_of(in));
      continue;
    }
    visit_floating(in.dtype, "copy", [&]<class From>() {
      visit_floating(out.dtype, "copy", [&]<class To>() { convert<From, To>(in, out); });
    });
  }
}

void fill(Exec&, const ops::Fill& f) {
  for (int64_t r = 0; r < row_count(f.out.shape); ++r) {
    const Tensor out = row(f.out, r);
    switch (out.dtype) {
      case DType::i64: fill_row<int64_t>(out, f.value); break;
      case DType::i32: fill_row<int32_t>(out, f.value); break;
      case DType::u8: fill_row<uint8_t>(out, f.value); break;
      default: visit_floating(out.dtype, "fill", [&]<class T>() { fill_row<T>(out, f.value); });
    }
  }
}

}  // namespace bev::reference
