#include <cstring>
#include <type_traits>

#include "ops/cuda/elementwise/elementwise.cuh"
#include "ops/cuda/primitives/launch_kernel.cuh"
#include "ops/cuda/primitives/vector_rows.cuh"
#include "ops/elementwise.h"
#include "ops/op_table.h"

namespace bev::cuda {

namespace {

constexpr int kThreads = 256;

// Conversions agree with base/float_types.h to the bit, also in what becomes of a NaN, which the
// hardware would replace by one of its own.
__device__ __forceinline__ float single(float v) { return v; }
__device__ __forceinline__ float single(__nv_bfloat16 v) { return __bfloat162float(v); }
__device__ __forceinline__ float single(__half v) {
  const uint32_t bits = __half_as_ushort(v);
  if ((bits & 0x7FFFu) <= 0x7C00u) return __half2float(v);
  return __uint_as_float((bits & 0x8000u) << 16 | 0x7F800000u | (bits & 0x3FFu) << 13);
}
__device__ __forceinline__ float single(double v) {
  if (v == v) return static_cast<float>(v);
  const auto bits = static_cast<uint64_t>(__double_as_longlong(v));
  const auto high = static_cast<uint32_t>(bits >> 32);
  return __uint_as_float((high & 0x80000000u) | 0x7FC00000u |
                         (static_cast<uint32_t>(bits >> 29) & 0x3FFFFFu));
}

template <class To>
__device__ __forceinline__ To rounded(float v) {
  const uint32_t bits = __float_as_uint(v);
  if constexpr (std::is_same_v<To, __nv_bfloat16>) {
    if (v != v) return __ushort_as_bfloat16(static_cast<unsigned short>(bits >> 16 | 0x40u));
    return __float2bfloat16_rn(v);
  } else if constexpr (std::is_same_v<To, __half>) {
    if (v != v)
      return __ushort_as_half(static_cast<unsigned short>((bits >> 16 & 0x8000u) | 0x7E00u));
    return __float2half_rn(v);
  } else {
    return static_cast<To>(v);
  }
}

template <class From, class To>
__global__ void __launch_bounds__(kThreads)
    convert_groups(Rows<const From> in, Rows<To> out, int64_t rows, int64_t width, bool wide) {
  each_group(rows, width, [&](int64_t row, int64_t column) {
    const Group<From> from = load_group(in[row], column, width, wide);
    Group<To> to;
#pragma unroll
    for (int j = 0; j < kGroup; ++j) to.put(j, rounded<To>(single(from.element(j))));
    store_group(to, out[row], column, width, wide);
  });
}

// A word of 1 to 16 bytes, the same in every type of that size.
template <int kBytes>
struct alignas(kBytes) Word {
  unsigned char byte[kBytes];
};
template <>
struct Word<16> {
  uint4 value;
};
template <>
struct Word<8> {
  uint64_t value;
};
template <>
struct Word<4> {
  uint32_t value;
};
template <>
struct Word<2> {
  uint16_t value;
};

// Calls body(row, word of the row) for every word, in the threads of a grid.
template <class Body>
__device__ __forceinline__ void each_word(int64_t rows, int64_t words, Body body) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < rows * words; i += step) {
    const int64_t row = i / words;
    body(row, i - row * words);
  }
}

template <int kBytes>
__device__ __forceinline__ Word<kBytes>* word_at(unsigned char* row, int64_t word) {
  return reinterpret_cast<Word<kBytes>*>(row) + word;
}

template <int kBytes>
__global__ void __launch_bounds__(kThreads)
    copy_words(Rows<unsigned char> in, Rows<unsigned char> out, int64_t rows, int64_t words) {
  each_word(rows, words, [&](int64_t row, int64_t word) {
    *word_at<kBytes>(out[row], word) = *word_at<kBytes>(in[row], word);
  });
}

template <int kBytes>
__global__ void __launch_bounds__(kThreads)
    fill_words(Rows<unsigned char> out, int64_t rows, int64_t words, Word<kBytes> value) {
  each_word(rows, words,
            [&](int64_t row, int64_t word) { *word_at<kBytes>(out[row], word) = value; });
}

// The same memory as a tensor of bytes.
Tensor as_bytes_of(const ConstTensor& t) {
  const auto size = static_cast<int64_t>(size_of(t.dtype));
  Tensor bytes{const_cast<std::byte*>(t.data), DType::u8, t.shape, t.stride};
  const int last = t.shape.rank() - 1;
  bytes.shape.set(last, t.shape[last] * size);
  for (int dim = 0; dim < last; ++dim) bytes.stride[static_cast<size_t>(dim)] *= size;
  return bytes;
}

// One row where the memory has no gaps.
Tensor flattened(const Tensor& bytes) {
  return is_contiguous(bytes) ? reshape(bytes, {bytes.shape.elements()}) : bytes;
}

// Calls f.template operator()<kBytes>() for the largest word that divides all rows.
template <class F>
void visit_words(const Tensor& a, const Tensor& b, F&& f) {
  const auto fits = [&](int bytes) {
    return width_of(a) % bytes == 0 && is_aligned(a, bytes) && is_aligned(b, bytes);
  };
  if (fits(16)) return f.template operator()<16>();
  if (fits(8)) return f.template operator()<8>();
  if (fits(4)) return f.template operator()<4>();
  if (fits(2)) return f.template operator()<2>();
  f.template operator()<1>();
}

void copy_same(Exec& ex, const ops::Copy& c) {
  if (is_contiguous(c.in) && is_contiguous(c.out)) {
    check_cuda(cudaMemcpyAsync(c.out.data, c.in.data, bytes_of(c.in), cudaMemcpyDeviceToDevice,
                               stream_of(ex)),
               "copy");
    return;
  }
  const Tensor in = as_bytes_of(c.in), out = as_bytes_of(c.out);
  visit_words(in, out, [&]<int kBytes>() {
    const int64_t rows = rows_of(in), words = width_of(in) / kBytes;
    copy_words<kBytes><<<blocks_for(ex, rows * words, kThreads), kThreads, 0, stream_of(ex)>>>(
        Rows<unsigned char>(in), Rows<unsigned char>(out), rows, words);
  });
  check_launch("copy");
}

template <class F>
void visit_any_float(DType dtype, F&& f) {
  if (dtype == DType::f64) return f.template operator()<double>();
  visit_cuda(dtype, "copy", f);
}

void convert(Exec& ex, const ops::Copy& c) {
  const bool flat = is_contiguous(c.in) && is_contiguous(c.out);
  const int64_t elements = c.in.shape.elements();
  const ConstTensor in = flat ? reshape(c.in, {elements}) : c.in;
  const Tensor out = flat ? reshape(c.out, {elements}) : c.out;
  const int64_t rows = rows_of(in), width = width_of(in);
  const unsigned blocks = blocks_for(ex, rows * ceil_div(width, kGroup), kThreads);
  visit_any_float(c.in.dtype, [&]<class From>() {
    visit_any_float(c.out.dtype, [&]<class To>() {
      if constexpr (!std::is_same_v<From, To>) {
        convert_groups<From, To><<<blocks, kThreads, 0, stream_of(ex)>>>(
            Rows<const From>(in), Rows<To>(out), rows, width, are_wide(in, out));
      }
    });
  });
  check_launch("copy");
}

// `value` in a dtype, as bytes, repeated.
template <class T>
void repeat(const T& value, unsigned char (&pattern)[16]) {
  for (size_t at = 0; at < sizeof pattern; at += sizeof value) {
    std::memcpy(pattern + at, &value, sizeof value);
  }
}

void make_pattern(DType dtype, double value, unsigned char (&pattern)[16]) {
  switch (dtype) {
    case DType::f64: return repeat(value, pattern);
    case DType::f32: return repeat(static_cast<float>(value), pattern);
    case DType::bf16: return repeat(bf16(static_cast<float>(value)), pattern);
    case DType::f16: return repeat(f16(static_cast<float>(value)), pattern);
    case DType::i64: return repeat(static_cast<int64_t>(value), pattern);
    case DType::i32: return repeat(static_cast<int32_t>(value), pattern);
    case DType::u8: return repeat(static_cast<uint8_t>(value), pattern);
  }
}

}  // namespace

void copy(Exec& ex, const ops::Copy& c) {
  if (c.in.shape.elements() == 0) return;
  if (c.in.dtype == c.out.dtype) {
    copy_same(ex, c);
  } else {
    convert(ex, c);
  }
}

void fill(Exec& ex, const ops::Fill& f) {
  if (f.out.shape.elements() == 0) return;
  unsigned char pattern[16];
  make_pattern(f.out.dtype, f.value, pattern);
  const bool uniform = std::memcmp(pattern, pattern + 1, sizeof pattern - 1) == 0;
  if (uniform && is_contiguous(f.out)) {
    check_cuda(cudaMemsetAsync(f.out.data, pattern[0], bytes_of(f.out), stream_of(ex)), "fill");
    return;
  }
  const Tensor out = flattened(as_bytes_of(f.out));
  visit_words(out, out, [&]<int kBytes>() {
    // Elements lie at multiples of their size, so that a word is never shorter than one.
    Word<kBytes> value;
    std::memcpy(&value, pattern, sizeof value);
    const int64_t rows = rows_of(out), words = width_of(out) / kBytes;
    fill_words<kBytes><<<blocks_for(ex, rows * words, kThreads), kThreads, 0, stream_of(ex)>>>(
        Rows<unsigned char>(out), rows, words, value);
  });
  check_launch("fill");
}

namespace {

template <class T>
__global__ void __launch_bounds__(kThreads)
    scale_groups(Rows<const T> x, Rows<T> y, int64_t rows, int64_t width, float factor, bool wide) {
  each_group(rows, width, [&](int64_t row, int64_t column) {
    const Group<T> value = load_group(x[row], column, width, wide);
    float result[kGroup];
#pragma unroll
    for (int j = 0; j < kGroup; ++j) result[j] = factor * value[j];
    store_group(Group<T>::of(result), y[row], column, width, wide);
  });
}

}  // namespace

void scale(Exec& ex, const ops::Scaling& s) {
  const int64_t rows = s.x.rows(), width = width_of(s.x);
  if (rows * width == 0) return;
  const unsigned blocks = blocks_for(ex, rows * ceil_div(width, kGroup), kThreads);
  visit_cuda(s.x.dtype, "scale", [&]<class T>() {
    scale_groups<T><<<blocks, kThreads, 0, stream_of(ex)>>>(Rows<const T>(s.x), Rows<T>(s.y), rows,
                                                            width, static_cast<float>(s.factor),
                                                            are_wide(s.x, s.y));
  });
  check_launch("scale");
}

namespace {

// out = dropout(x) [+ residual], group by group; out may be either operand.
template <class T, bool kAdds>
__global__ void __launch_bounds__(kThreads)
    dropout_groups(Rows<const T> x, Rows<const T> residual, Rows<T> out, int64_t rows,
                   int64_t width, DropoutDraws draws, bool wide) {
  each_group(rows, width, [&](int64_t row, int64_t column) {
    const Group<T> value = load_group(x[row], column, width, wide);
    Group<T> base;
    if constexpr (kAdds) base = load_group(residual[row], column, width, wide);
    unsigned kept = ~0u;
    if (draws.active) kept = draws.kept(row, column);
    float sum[kGroup];
#pragma unroll
    for (int j = 0; j < kGroup; ++j) {
      sum[j] = (kept >> j & 1u) != 0 ? value[j] * draws.scale : 0.0f;
      if constexpr (kAdds) sum[j] += base[j];
    }
    store_group(Group<T>::of(sum), out[row], column, width, wide);
  });
}

}  // namespace

void dropout(Exec& ex, const ops::DropoutApply& d) {
  const int64_t rows = d.x.rows(), width = width_of(d.x);
  if (rows * width == 0) return;
  const unsigned blocks = blocks_for(ex, rows * ceil_div(width, kGroup), kThreads);
  visit_cuda(d.x.dtype, "dropout", [&]<class T>() {
    dropout_groups<T, false>
        <<<blocks, kThreads, 0, stream_of(ex)>>>(Rows<const T>(d.x), {}, Rows<T>(d.y), rows, width,
                                                 DropoutDraws(d.dropout), are_wide(d.x, d.y));
  });
  check_launch("dropout");
}

void residual_add(Exec& ex, const ops::ResidualAdd& r) {
  const int64_t rows = r.out.rows(), width = width_of(r.out);
  if (rows * width == 0) return;
  const unsigned blocks = blocks_for(ex, rows * ceil_div(width, kGroup), kThreads);
  visit_cuda(r.out.dtype, "residual_add", [&]<class T>() {
    dropout_groups<T, true><<<blocks, kThreads, 0, stream_of(ex)>>>(
        Rows<const T>(r.delta), Rows<const T>(r.residual), Rows<T>(r.out), rows, width,
        DropoutDraws(r.dropout), are_wide(r.residual, r.delta, r.out));
  });
  check_launch("residual_add");
}

namespace {

// The up half of a gated row begins at column `width`; `wide` holds for both halves.
template <class T, Activation kActivation>
__global__ void __launch_bounds__(kThreads)
    activate_groups(Rows<const T> x, Rows<T> y, int64_t rows, int64_t width, bool wide) {
  trigger_dependents();
  grid_dependency_wait();
  each_group(rows, width, [&](int64_t row, int64_t column) {
    const T* x_row = x[row];
    const Group<T> group = load_group(x_row, column, width, wide);
    Group<T> up;
    if constexpr (is_gated(kActivation)) up = load_group(x_row + width, column, width, wide);
    float result[kGroup];
#pragma unroll
    for (int j = 0; j < kGroup; ++j) {
      result[j] = Function<kActivation>(group[j]).value;
      if constexpr (is_gated(kActivation)) result[j] *= up[j];
    }
    store_group(Group<T>::of(result), y[row], column, width, wide);
  });
}

// dx = dy f'(x); gated: d gate = dy up f'(gate), d up = dy f(gate). dx may alias x: a thread reads
// all its inputs before it writes, and no other thread reads them.
template <class T, Activation kActivation>
__global__ void __launch_bounds__(kThreads)
    activate_backward_groups(Rows<const T> dy, Rows<const T> x, Rows<T> dx, int64_t rows,
                             int64_t width, bool wide) {
  each_group(rows, width, [&](int64_t row, int64_t column) {
    const T* x_row = x[row];
    T* dx_row = dx[row];
    const Group<T> slope = load_group(dy[row], column, width, wide);
    const Group<T> group = load_group(x_row, column, width, wide);
    Group<T> up;
    if constexpr (is_gated(kActivation)) up = load_group(x_row + width, column, width, wide);
    float result[kGroup], of_up[kGroup];
#pragma unroll
    for (int j = 0; j < kGroup; ++j) {
      const Function<kActivation> f(group[j]);
      result[j] = slope[j] * f.slope;
      if constexpr (is_gated(kActivation)) {
        result[j] *= up[j];
        of_up[j] = slope[j] * f.value;
      }
    }
    store_group(Group<T>::of(result), dx_row, column, width, wide);
    if constexpr (is_gated(kActivation)) {
      store_group(Group<T>::of(of_up), dx_row + width, column, width, wide);
    }
  });
}

// One runtime activation -> one kernel instance.
template <class F>
void visit_activation(Activation activation, F&& f) {
  switch (activation) {
    case Activation::GeluTanh: return f.template operator()<Activation::GeluTanh>();
    case Activation::GeluErf: return f.template operator()<Activation::GeluErf>();
    case Activation::Relu: return f.template operator()<Activation::Relu>();
    case Activation::SquaredRelu: return f.template operator()<Activation::SquaredRelu>();
    case Activation::Tanh: return f.template operator()<Activation::Tanh>();
    case Activation::SwiGlu: return f.template operator()<Activation::SwiGlu>();
    case Activation::GeGluTanh: return f.template operator()<Activation::GeGluTanh>();
    case Activation::GeGluErf: return f.template operator()<Activation::GeGluErf>();
  }
}

// Whether a half of a gated row begins at a multiple of kWideBytes.
bool halves_are_wide(Activation activation, const ConstTensor& x, int64_t width) {
  const auto bytes = width * static_cast<int64_t>(size_of(x.dtype));
  return !is_gated(activation) || bytes % kWideBytes == 0;
}

}  // namespace

void activate(Exec& ex, const ops::Activate& a) {
  const int64_t rows = a.y.rows(), width = width_of(a.y);
  if (rows * width == 0) return;
  const bool wide = are_wide(a.x, a.y) && halves_are_wide(a.activation, a.x, width);
  const unsigned blocks = blocks_for(ex, rows * ceil_div(width, kGroup), kThreads);
  visit_cuda(a.x.dtype, "activate", [&]<class T>() {
    visit_activation(a.activation, [&]<Activation kActivation>() {
      launch_for_rows("activate", rows, activate_groups<T, kActivation>, blocks, kThreads,
                      stream_of(ex), Rows<const T>(a.x), Rows<T>(a.y), rows, width, wide);
    });
  });
}

void activate_backward(Exec& ex, const ops::ActivateBackward& a) {
  const int64_t rows = a.dy.rows(), width = width_of(a.dy);
  if (rows * width == 0) return;
  const bool wide = are_wide(a.dy, a.x, a.dx) && halves_are_wide(a.activation, a.x, width);
  const unsigned blocks = blocks_for(ex, rows * ceil_div(width, kGroup), kThreads);
  visit_cuda(a.x.dtype, "activate_backward", [&]<class T>() {
    visit_activation(a.activation, [&]<Activation kActivation>() {
      activate_backward_groups<T, kActivation><<<blocks, kThreads, 0, stream_of(ex)>>>(
          Rows<const T>(a.dy), Rows<const T>(a.x), Rows<T>(a.dx), rows, width, wide);
    });
  });
  check_launch("activate_backward");
}

}  // namespace bev::cuda
