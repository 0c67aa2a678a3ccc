#include "ops/elementwise.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "ops/cpu/dropout_args.h"
#include "ops/cpu/kernels/kernels.h"
#include "ops/cpu/parallel_loops.h"
#include "ops/op_table.h"
#include "tensor/dtype_dispatch.h"

namespace bev::cpu {

namespace {

// The short types round from float.
template <class To>
To converted(double value) {
  if constexpr (std::is_same_v<To, bf16> || std::is_same_v<To, f16>) {
    return To(static_cast<float>(value));
  } else {
    return static_cast<To>(value);
  }
}

// f32 and bf16 are the backend's own types; the others pass through the border only.
template <class From, class To>
void convert(const From* in, To* out, int64_t count) {
  if constexpr (std::is_same_v<From, float> && std::is_same_v<To, bf16>) {
    kernels().to_bf16(in, out, count);
  } else if constexpr (std::is_same_v<From, bf16> && std::is_same_v<To, float>) {
    kernels().to_f32(in, out, count);
  } else {
    for (int64_t i = 0; i < count; ++i) out[i] = converted<To>(static_cast<double>(in[i]));
  }
}

void copy_bytes(Exec& ex, const ops::Copy& c) {
  const auto size = static_cast<int64_t>(size_of(c.in.dtype));
  // Rows in bytes: the copy does not care for the type.
  const auto bytes_view = [size]<class View>(View t) {
    t.shape.set(t.shape.rank() - 1, t.shape[t.shape.rank() - 1] * size);
    for (int dim = 0; dim + 1 < t.shape.rank(); ++dim) t.stride[static_cast<size_t>(dim)] *= size;
    return t;
  };
  const RowsOf<const std::byte> in(bytes_view(c.in));
  const RowsOf<std::byte> out(bytes_view(c.out));
  const int64_t width = width_of(c.in);
  each_piece(ex, in.count(), width, [&](int64_t row, int64_t begin, int64_t end) {
    std::memmove(out[row] + begin * size, in[row] + begin * size,
                 static_cast<size_t>((end - begin) * size));
  });
}

template <class T>
void fill_with(Exec& ex, const Tensor& t, T value) {
  const RowsOf<T> out(t);
  each_piece(ex, out.count(), width_of(t), [&](int64_t row, int64_t begin, int64_t end) {
    std::fill(out[row] + begin, out[row] + end, value);
  });
}

}  // namespace

void copy(Exec& ex, const ops::Copy& c) {
  if (c.in.dtype == c.out.dtype) {
    copy_bytes(ex, c);
    return;
  }
  visit_floating(c.in.dtype, "copy", [&]<class From>() {
    visit_floating(c.out.dtype, "copy", [&]<class To>() {
      const RowsOf<const From> in(c.in);
      const RowsOf<To> out(c.out);
      each_piece(ex, in.count(), width_of(c.in), [&](int64_t row, int64_t begin, int64_t end) {
        convert(in[row] + begin, out[row] + begin, end - begin);
      });
    });
  });
}

void fill(Exec& ex, const ops::Fill& f) {
  switch (f.out.dtype) {
    case DType::i64: fill_with(ex, f.out, static_cast<int64_t>(f.value)); return;
    case DType::i32: fill_with(ex, f.out, static_cast<int32_t>(f.value)); return;
    case DType::u8: fill_with(ex, f.out, static_cast<uint8_t>(f.value)); return;
    default:
      visit_floating(f.out.dtype, "fill",
                     [&]<class T>() { fill_with(ex, f.out, converted<T>(f.value)); });
  }
}

void scale(Exec& ex, const ops::Scaling& s) {
  visit_cpu(s.x.dtype, "scale", [&]<class T>() {
    const RowsOf<const T> x(s.x);
    const RowsOf<T> y(s.y);
    const auto factor = static_cast<float>(s.factor);
    each_piece(ex, x.count(), width_of(s.x), [&](int64_t row, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[row][i] = T(factor * static_cast<float>(x[row][i]));
    });
  });
}

void activate(Exec& ex, const ops::Activate& a) {
  visit_cpu(a.x.dtype, "activate", [&]<class T>() {
    const RowsOf<const T> x(a.x);
    const RowsOf<T> y(a.y);
    const int64_t width = width_of(a.y);
    const bool gated = is_gated(a.activation);
    each_piece(ex, y.count(), width, [&](int64_t row, int64_t begin, int64_t end) {
      const T* in = x[row] + begin;
      kernels_of<T>().activate(a.activation, in, gated ? in + width : nullptr, y[row] + begin,
                               end - begin);
    });
  });
}

void activate_backward(Exec& ex, const ops::ActivateBackward& a) {
  visit_cpu(a.x.dtype, "activate_backward", [&]<class T>() {
    const RowsOf<const T> dy(a.dy), x(a.x);
    const RowsOf<T> dx(a.dx);
    const int64_t width = width_of(a.dy);
    const bool gated = is_gated(a.activation);
    each_piece(ex, dy.count(), width, [&](int64_t row, int64_t begin, int64_t end) {
      const T* in = x[row] + begin;
      T* out = dx[row] + begin;
      kernels_of<T>().activate_backward(a.activation, dy[row] + begin, in,
                                        gated ? in + width : nullptr, out,
                                        gated ? out + width : nullptr, end - begin);
    });
  });
}

void dropout(Exec& ex, const ops::DropoutApply& d) {
  visit_cpu(d.x.dtype, "dropout", [&]<class T>() {
    const RowsOf<const T> x(d.x);
    const RowsOf<T> y(d.y);
    const bool drops = d.dropout.probability > 0;
    each_piece(ex, x.count(), width_of(d.x), [&](int64_t row, int64_t begin, int64_t end) {
      const T* in = x[row] + begin;
      T* out = y[row] + begin;
      if (drops) {
        kernels_of<T>().dropout(in, nullptr, out, end - begin, draws_of(d.dropout, row, begin));
      } else if (in != out) {
        std::memmove(out, in, static_cast<size_t>(end - begin) * sizeof(T));
      }
    });
  });
}

void residual_add(Exec& ex, const ops::ResidualAdd& r) {
  visit_cpu(r.residual.dtype, "residual_add", [&]<class T>() {
    const RowsOf<const T> residual(r.residual), delta(r.delta);
    const RowsOf<T> out(r.out);
    each_piece(ex, out.count(), width_of(r.out), [&](int64_t row, int64_t begin, int64_t end) {
      add_dropped(residual[row] + begin, delta[row] + begin, out[row] + begin, end - begin,
                  r.dropout, row, begin);
    });
  });
}

}  // namespace bev::cpu
