#include "ops/cuda/elementwise/elementwise.cuh"
#include "ops/cuda/primitives/launch_kernel.cuh"
#include "ops/cuda/primitives/vector_rows.cuh"
#include "ops/elementwise.h"
#include "ops/op_table.h"

namespace bev::cuda {

namespace {

constexpr int kThreads = 256;

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

// dx = dy f'(x); gated: d gate = dy up f'(gate), d up = dy f(gate). A thread reads all it needs
// before it writes, and nobody else reads it: dx may be x.
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
