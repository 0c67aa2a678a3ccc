#include <algorithm>

#include "ops/cuda/gemm/gemm_kernels.h"
#include "ops/cuda/primitives/element_types.cuh"

namespace bev::cuda {

namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int kColumnsPerLane = 8, kStrip = 32 * kColumnsPerLane;  // columns of a block
constexpr int kRowsAtOnce = 4;                                     // of a warp
// Of a slice, whose length is a multiple of this.
constexpr int64_t kFewestRows = kWarps * kRowsAtOnce;
// What a large GPU has room for at once, four on each of 132 multiprocessors: no block waits for
// another to end. The same for every GPU, so that the order of additions is.
constexpr int64_t kMostBlocks = 528;
constexpr int kCombineColumns = 32, kCombineParts = 32;

template <class T, int V>
struct alignas(V * sizeof(T)) Pack {
  T element[V];
};

// The sums of one slice of rows over one strip of columns: warp w takes the rows w, w + kWarps,
// ..., a lane kColumnsPerLane columns in packs of V. The order of additions does not depend on V.
// out[slice, column] = sum, or += where `add`.
template <class T, int V>
__global__ void __launch_bounds__(kThreads, 4)
    column_sums_kernel(const T* in, int64_t stride, int64_t rows, int64_t columns,
                       int64_t rows_per_slice, float* out, bool add) {
  __shared__ float shared[kWarps][kStrip];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t strip = static_cast<int64_t>(blockIdx.x) * kStrip;
  const int64_t slice = blockIdx.y;
  const int64_t end = min(rows, (slice + 1) * rows_per_slice);
  float sum[kColumnsPerLane] = {};
#pragma unroll kRowsAtOnce
  for (int64_t row = slice * rows_per_slice + warp; row < end; row += kWarps) {
    const T* line = in + row * stride + strip;
#pragma unroll
    for (int p = 0; p < kColumnsPerLane / V; ++p) {
      const int column = (p * 32 + lane) * V;
      // The count of columns is a multiple of V, hence a pack lies inside or outside.
      if (strip + column >= columns) continue;
      const auto pack = *reinterpret_cast<const Pack<T, V>*>(line + column);
#pragma unroll
      for (int v = 0; v < V; ++v) sum[p * V + v] += to_float(pack.element[v]);
    }
  }
  for (int j = 0; j < kColumnsPerLane; ++j) {
    shared[warp][(j / V * 32 + lane) * V + j % V] = sum[j];
  }
  __syncthreads();
  const int64_t column = strip + threadIdx.x;
  if (column >= columns) return;
  float total = 0;
  for (int w = 0; w < kWarps; ++w) total += shared[w][threadIdx.x];
  float& result = out[slice * columns + column];
  result = add ? result + total : total;
}

__global__ void __launch_bounds__(kCombineColumns* kCombineParts)
    combine_kernel(const float* partial, int64_t slices, int64_t columns, float* sums) {
  __shared__ float shared[kCombineParts][kCombineColumns];
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kCombineColumns + threadIdx.x;
  float part = 0;
  if (column < columns) {
#pragma unroll 4
    for (int64_t s = threadIdx.y; s < slices; s += kCombineParts) {
      part += partial[s * columns + column];
    }
  }
  shared[threadIdx.y][threadIdx.x] = part;
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns) return;
  float total = 0;
  for (int p = 0; p < kCombineParts; ++p) total += shared[p][threadIdx.x];
  sums[column] += total;
}

// The rows of op(a) are rows in memory: a warp takes one.
template <class T>
__global__ void contiguous_sums_kernel(const T* in, int64_t stride, int64_t rows, int64_t columns,
                                       float* sums) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (row >= rows) return;
  float sum = 0;
  for (int64_t c = threadIdx.x % 32; c < columns; c += 32) sum += to_float(in[row * stride + c]);
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) sums[row] += sum;
}

template <class T, int V>
void launch_columns(cudaStream_t stream, const ConstTensor& a, float* sums, float* partial,
                    size_t partial_bytes) {
  const int64_t rows = a.shape[0], columns = a.shape[1];
  const auto room =
      static_cast<int64_t>(partial_bytes / (sizeof(float) * static_cast<size_t>(columns)));
  const int64_t strips = ceil_div(columns, kStrip);
  const int64_t most = std::max<int64_t>(1, std::min(kMostBlocks / strips, room));
  const int64_t rows_per_slice = kFewestRows * ceil_div(rows, most * kFewestRows);
  const int64_t slices = ceil_div(rows, rows_per_slice);
  const bool direct = slices == 1;
  const dim3 grid(static_cast<unsigned>(strips), static_cast<unsigned>(slices));
  column_sums_kernel<T, V><<<grid, kThreads, 0, stream>>>(
      data_of<T>(a), a.stride[0], rows, columns, rows_per_slice, direct ? sums : partial, direct);
  check_launch("matmul dbias");
  if (direct) return;
  combine_kernel<<<static_cast<unsigned>(ceil_div(columns, kCombineColumns)),
                   dim3(kCombineColumns, kCombineParts), 0, stream>>>(partial, slices, columns,
                                                                      sums);
  check_launch("matmul dbias");
}

}  // namespace

void add_row_sums(Exec& ex, const ConstTensor& a, ops::Transpose ta, const Tensor& sums,
                  std::byte* partial, size_t partial_bytes) {
  if (a.shape.elements() == 0) return;
  cudaStream_t stream = stream_of(ex);
  float* out = data_of<float>(sums);
  visit_cuda(a.dtype, "matmul", [&]<class T>() {
    if (ta == ops::Transpose::No) {
      contiguous_sums_kernel<T>
          <<<static_cast<unsigned>(ceil_div(a.shape[0], kWarps)), kThreads, 0, stream>>>(
              data_of<T>(a), a.stride[0], a.shape[0], a.shape[1], out);
      check_launch("matmul dbias");
      return;
    }
    constexpr int kWide = 16 / sizeof(T);
    const bool aligned = reinterpret_cast<uintptr_t>(a.data) % 16 == 0 &&
                         a.stride[0] % kWide == 0 && a.shape[1] % kWide == 0;
    auto* parts = reinterpret_cast<float*>(partial);
    if (aligned) {
      launch_columns<T, kWide>(stream, a, out, parts, partial_bytes);
    } else {
      launch_columns<T, 1>(stream, a, out, parts, partial_bytes);
    }
  });
}

}  // namespace bev::cuda
