#include "ops/cuda/primitives/vector_rows.cuh"
#include "ops/op_table.h"
#include "ops/reduce.h"

namespace bev::cuda {

namespace {

constexpr int kThreads = 256;

struct Parts {
  const void* data[ops::kMostCombined];
  int count;
};

template <class Sum>
__device__ __forceinline__ Sum combined(Sum a, Sum b, ReduceOp op) {
  switch (op) {
    case ReduceOp::Max: return a < b ? b : a;
    case ReduceOp::Min: return b < a ? b : a;
    default: return a + b;
  }
}

// Parts of 2- and 4-byte elements.
template <class T>
__global__ void __launch_bounds__(kThreads)
    combine_groups(const __grid_constant__ Parts parts, ReduceOp op, int64_t count, bool wide,
                   T* out) {
  each_group(1, count, [&](int64_t, int64_t column) {
    float sums[kGroup];
    for (int p = 0; p < parts.count; ++p) {
      const Group<T> group = load_group(static_cast<const T*>(parts.data[p]), column, count, wide);
#pragma unroll
      for (int j = 0; j < kGroup; ++j)
        sums[j] = p == 0 ? group[j] : combined(sums[j], group[j], op);
    }
    store_group(Group<T>::of(sums), out, column, count, wide);
  });
}

__global__ void __launch_bounds__(kThreads)
    combine_doubles(const __grid_constant__ Parts parts, ReduceOp op, int64_t count, double* out) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    double sum = static_cast<const double*>(parts.data[0])[i];
    for (int p = 1; p < parts.count; ++p)
      sum = combined(sum, static_cast<const double*>(parts.data[p])[i], op);
    out[i] = sum;
  }
}

}  // namespace

void combine(Exec& ex, const ops::Combine& c) {
  const int64_t count = c.out.shape.elements();
  if (count == 0) return;
  Parts parts{.data = {}, .count = static_cast<int>(c.parts.size())};
  bool wide = are_wide(reshape(c.out, {count}));
  for (size_t p = 0; p < c.parts.size(); ++p) {
    parts.data[p] = c.parts[p].data;
    wide = wide && are_wide(reshape(c.parts[p], {count}));
  }
  if (c.out.dtype == DType::f64) {
    combine_doubles<<<blocks_for(ex, count, kThreads), kThreads, 0, stream_of(ex)>>>(
        parts, c.op, count, data_of<double>(c.out));
  } else {
    visit_cuda(c.out.dtype, "combine", [&]<class T>() {
      combine_groups<T>
          <<<blocks_for(ex, ceil_div(count, kGroup), kThreads), kThreads, 0, stream_of(ex)>>>(
              parts, c.op, count, wide, data_of<T>(c.out));
    });
  }
  check_launch("combine");
}

}  // namespace bev::cuda
