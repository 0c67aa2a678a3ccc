#include "ops/cuda/gemm/gemm_kernels.h"
#include "ops/cuda/gemm/gemm_key.h"
#include "ops/cuda/primitives/element_types.cuh"

namespace bev::cuda {

namespace {

constexpr int kTile = 64, kDepth = 16, kSide = 16, kThreads = kSide * kSide;
constexpr int kPer = kTile / kSide;  // rows and columns of a thread, kSide apart

// op(t): element (i, j) lies at data[i * row + j * column]; one of the two is 1.
template <class T>
struct Operand {
  const T* data;
  int64_t row, column;
};

// tile[d][i] = element first + i along the side of op(a) or op(b) that stays, depth + d along the
// one that is summed; zero outside. Neighbouring threads read neighbouring addresses in both
// layouts.
template <class T>
__device__ void load_tile(const T* data, int64_t along, int64_t deep, int64_t first, int64_t count,
                          int64_t depth, int64_t k, float (&tile)[kDepth][kTile + 1]) {
  for (int e = threadIdx.x; e < kTile * kDepth; e += kThreads) {
    const int i = deep == 1 ? e / kDepth : e % kTile;
    const int d = deep == 1 ? e % kDepth : e / kTile;
    const bool inside = first + i < count && depth + d < k;
    tile[d][i] = inside ? to_float(data[(first + i) * along + (depth + d) * deep]) : 0.0f;
  }
}

template <class In, class Out>
__global__ void __launch_bounds__(kThreads)
    gemm_fallback_kernel(Operand<In> a, Operand<In> b, Out* out, int64_t out_row, const Out* addend,
                         int64_t addend_row, const In* bias, int64_t m, int64_t n, int64_t k,
                         int64_t tiles_across) {
  __shared__ float a_tile[kDepth][kTile + 1], b_tile[kDepth][kTile + 1];
  const int64_t top = blockIdx.x / tiles_across * kTile, left = blockIdx.x % tiles_across * kTile;
  const int x = threadIdx.x % kSide, y = threadIdx.x / kSide;
  float sum[kPer][kPer] = {};
  for (int64_t depth = 0; depth < k; depth += kDepth) {
    load_tile(a.data, a.row, a.column, top, m, depth, k, a_tile);
    load_tile(b.data, b.column, b.row, left, n, depth, k, b_tile);
    __syncthreads();
    for (int d = 0; d < kDepth; ++d) {
      float row[kPer], column[kPer];
      for (int i = 0; i < kPer; ++i) row[i] = a_tile[d][y + kSide * i];
      for (int j = 0; j < kPer; ++j) column[j] = b_tile[d][x + kSide * j];
      for (int i = 0; i < kPer; ++i) {
        for (int j = 0; j < kPer; ++j) sum[i][j] += row[i] * column[j];
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < kPer; ++i) {
    for (int j = 0; j < kPer; ++j) {
      const int64_t r = top + y + kSide * i, c = left + x + kSide * j;
      if (r >= m || c >= n) continue;
      float value = sum[i][j];
      if (addend != nullptr) value += to_float(addend[r * addend_row + c]);
      if (bias != nullptr) value += to_float(bias[c]);
      out[r * out_row + c] = from_float<Out>(value);
    }
  }
}

template <class In, class Out>
void launch(Exec& ex, const ops::Matmul& m, const Tensor& target) {
  using ops::Transpose;
  const auto operand = [](const ConstTensor& t, Transpose turned) -> Operand<In> {
    const bool swap = turned == Transpose::Yes;
    return {data_of<In>(t), swap ? 1 : t.stride[0], swap ? t.stride[0] : 1};
  };
  const int64_t rows = target.shape[0], columns = target.shape[1];
  const int64_t across = ceil_div(columns, kTile);
  const ConstTensor addend = added_to(m, false);
  gemm_fallback_kernel<In, Out>
      <<<static_cast<unsigned>(ceil_div(rows, kTile) * across), kThreads, 0, stream_of(ex)>>>(
          operand(m.a, m.ta), operand(m.b, m.tb), data_of<Out>(target), target.stride[0],
          addend.present() ? data_of<Out>(addend) : nullptr, addend.stride[0],
          m.bias.present() ? data_of<In>(m.bias) : nullptr, rows, columns,
          m.a.shape[m.ta == Transpose::No ? 1 : 0], across);
  check_launch("matmul");
}

}  // namespace

void gemm_fallback(Exec& ex, const ops::Matmul& m, const Tensor& target) {
  visit_cuda(m.a.dtype, "matmul", [&]<class T>() {
    if (target.dtype == DType::f32) {
      launch<T, float>(ex, m, target);
    } else {
      launch<T, T>(ex, m, target);
    }
  });
}

}  // namespace bev::cuda
