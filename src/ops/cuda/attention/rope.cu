#include "ops/cuda/primitives/launch_kernel.cuh"
#include "ops/cuda/primitives/vector_rows.cuh"
#include "ops/op_table.h"
#include "ops/rope.h"

namespace bev::cuda {

namespace {

constexpr int kThreads = 256;

// The rows of x are (token, head); a thread turns a group of the first half with the same group of
// the second.
template <class T>
__global__ void __launch_bounds__(kThreads)
    turn_groups(Rows<T> x, int64_t rows, int64_t heads, int64_t half, const int32_t* positions,
                Rows<const float> cosine, Rows<const float> sine, float sense, bool wide) {
  trigger_dependents();
  grid_dependency_wait();
  each_group(rows, half, [&](int64_t row, int64_t column) {
    T* first = x[row];
    T* second = first + half;
    const int64_t position = positions[row / heads];
    const Group<T> a = load_group(first, column, half, wide);
    const Group<T> b = load_group(second, column, half, wide);
    const Group<float> c = load_group(cosine[position], column, half, wide);
    const Group<float> s = load_group(sine[position], column, half, wide);
    float turned_a[kGroup], turned_b[kGroup];
#pragma unroll
    for (int j = 0; j < kGroup; ++j) {
      turned_a[j] = a[j] * c[j] - b[j] * sense * s[j];
      turned_b[j] = b[j] * c[j] + a[j] * sense * s[j];
    }
    store_group(Group<T>::of(turned_a), first, column, half, wide);
    store_group(Group<T>::of(turned_b), second, column, half, wide);
  });
}

}  // namespace

void rope(Exec& ex, const ops::Rope& r) {
  const int64_t rows = rows_of(r.x), half = width_of(r.cosine);
  if (rows * half == 0) return;
  const bool wide = are_wide(r.x, r.cosine, r.sine) &&
                    half * static_cast<int64_t>(size_of(r.x.dtype)) % kWideBytes == 0;
  const unsigned blocks = blocks_for(ex, rows * ceil_div(half, kGroup), kThreads);
  visit_cuda(r.x.dtype, "rope", [&]<class T>() {
    launch_for_rows("rope", r.x.rows(), turn_groups<T>, blocks, kThreads, stream_of(ex),
                    Rows<T>(r.x), rows, r.x.shape[1], half, data_of<int32_t>(r.positions),
                    Rows<const float>(r.cosine), Rows<const float>(r.sine),
                    r.inverse ? -1.0f : 1.0f, wide);
  });
}

}  // namespace bev::cuda
