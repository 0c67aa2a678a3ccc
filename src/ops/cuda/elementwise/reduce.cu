#include "ops/cuda/primitives/vector_rows.cuh"
#include "ops/cuda/workspace.h"
#include "ops/op_table.h"
#include "ops/reduce.h"

namespace bev::cuda {

namespace {

constexpr int kThreads = 512, kWarps = kThreads / 32;
constexpr int kCombineThreads = 256;

// The sum over a block, valid in thread 0. Called at most once per kernel and array.
__device__ __forceinline__ double block_sum(double value, double (&shared)[kWarps]) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(kAllLanes, value, offset);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  double sum = 0;
  if (threadIdx.x == 0) {
    for (const double of_warp : shared) sum += of_warp;
  }
  return sum;
}

// parts[block] = the block's share of sum x^2. Squares are formed in f64: they neither overflow nor
// vanish.
template <class T>
__global__ void __launch_bounds__(kThreads)
    sum_squares(const T* x, int64_t count, bool wide, double* parts) {
  __shared__ double shared[kWarps];
  double sum = 0;
  each_group(1, count, [&](int64_t, int64_t column) {
    const Group<T> group = load_group(x, column, count, wide);
#pragma unroll
    for (int j = 0; j < kGroup; ++j) {
      const auto v = static_cast<double>(group[j]);
      sum += v * v;
    }
  });
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

// parts[block] and parts[blocks + block] = the block's shares of sum x * weight and sum weight.
__global__ void __launch_bounds__(kThreads)
    sum_weighted(const float* x, const float* weight, int64_t count, double* parts) {
  __shared__ double shared[2][kWarps];
  double sum = 0, weights = 0;
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const auto w = static_cast<double>(weight[i]);
    sum += static_cast<double>(x[i]) * w;
    weights += w;
  }
  sum = block_sum(sum, shared[0]);
  weights = block_sum(weights, shared[1]);
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = sum;
    parts[gridDim.x + blockIdx.x] = weights;
  }
}

// Block i: out[i] += scale * the sum of parts [i * count, (i + 1) * count). Null: 1.
__global__ void __launch_bounds__(kThreads)
    add_parts(const double* parts, int count, const double* scale, double* out) {
  __shared__ double shared[kWarps];
  double sum = 0;
  for (int i = threadIdx.x; i < count; i += kThreads) sum += parts[blockIdx.x * count + i];
  sum = block_sum(sum, shared);
  if (scale != nullptr) sum *= *scale;
  if (threadIdx.x == 0) out[blockIdx.x] += sum;
}

// Sums of hashes wrap around and come in any order.
template <class Bits>
__global__ void __launch_bounds__(kThreads)
    sum_hashes(const Bits* x, int64_t count, unsigned long long* out) {
  uint64_t sum = 0;
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step)
    sum += hash_of_element(x[i], static_cast<uint64_t>(i));
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(kAllLanes, sum, offset);
  if (threadIdx.x % 32 == 0) atomicAdd(out, static_cast<unsigned long long>(sum));
}

struct CombinedParts {
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
__global__ void __launch_bounds__(kCombineThreads)
    combine_groups(const __grid_constant__ CombinedParts parts, ReduceOp op, int64_t count,
                   bool wide, T* out) {
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

__global__ void __launch_bounds__(kCombineThreads)
    combine_doubles(const __grid_constant__ CombinedParts parts, ReduceOp op, int64_t count,
                    double* out) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    double sum = static_cast<const double*>(parts.data[0])[i];
    for (int p = 1; p < parts.count; ++p)
      sum = combined(sum, static_cast<const double*>(parts.data[p])[i], op);
    out[i] = sum;
  }
}

}  // namespace

void squared_norm(Exec& ex, const ops::SquaredNorm& s) {
  const int64_t count = s.x.shape.elements();
  if (count == 0) return;
  ArenaScope scope(ex.scratch);
  auto* parts = data_of<double>(workspace_of(ex, s, "parts of a sum"));
  const auto blocks = static_cast<int>(sum_parts(ceil_div(count, kGroup), kThreads));
  const ConstTensor flat = reshape(s.x, {count});
  visit_cuda(s.x.dtype, "squared_norm", [&]<class T>() {
    sum_squares<T><<<static_cast<unsigned>(blocks), kThreads, 0, stream_of(ex)>>>(
        data_of<T>(flat), count, are_wide(flat), parts);
  });
  check_launch("squared_norm");
  add_parts<<<1, kThreads, 0, stream_of(ex)>>>(parts, blocks, nullptr, data_of<double>(s.out));
  check_launch("squared_norm");
}

void weighted_sum(Exec& ex, const ops::WeightedSum& s) {
  const int64_t count = s.x.shape[0];
  if (count == 0) return;
  if (s.x.dtype != DType::f32) refuse_dtype("weighted_sum", s.x.dtype);
  ArenaScope scope(ex.scratch);
  auto* parts = data_of<double>(workspace_of(ex, s, "parts of a sum"));
  const auto blocks = static_cast<int>(sum_parts(count, kThreads));
  sum_weighted<<<static_cast<unsigned>(blocks), kThreads, 0, stream_of(ex)>>>(
      data_of<float>(s.x), data_of<float>(s.weight), count, parts);
  check_launch("weighted_sum");
  const auto* scale = s.scale.present() ? data_of<double>(s.scale) : nullptr;
  add_parts<<<2, kThreads, 0, stream_of(ex)>>>(parts, blocks, scale, data_of<double>(s.out));
  check_launch("weighted_sum");
}

void hash_bits(Exec& ex, const ops::HashBits& h) {
  const int64_t count = h.x.shape.elements();
  if (count == 0) return;
  const auto blocks = static_cast<unsigned>(sum_parts(count, kThreads));
  auto* out = reinterpret_cast<unsigned long long*>(h.out.data);
  const auto run = [&]<class Bits>() {
    sum_hashes<Bits><<<blocks, kThreads, 0, stream_of(ex)>>>(
        reinterpret_cast<const Bits*>(h.x.data), count, out);
  };
  switch (size_of(h.x.dtype)) {
    case 1: run.operator()<uint8_t>(); break;
    case 2: run.operator()<uint16_t>(); break;
    case 4: run.operator()<uint32_t>(); break;
    default: run.operator()<uint64_t>(); break;
  }
  check_launch("hash_bits");
}

void combine(Exec& ex, const ops::Combine& c) {
  const int64_t count = c.out.shape.elements();
  if (count == 0) return;
  CombinedParts parts{.data = {}, .count = static_cast<int>(c.parts.size())};
  bool wide = are_wide(reshape(c.out, {count}));
  for (size_t p = 0; p < c.parts.size(); ++p) {
    parts.data[p] = c.parts[p].data;
    wide = wide && are_wide(reshape(c.parts[p], {count}));
  }
  if (c.out.dtype == DType::f64) {
    combine_doubles<<<blocks_for(ex, count, kCombineThreads), kCombineThreads, 0, stream_of(ex)>>>(
        parts, c.op, count, data_of<double>(c.out));
  } else {
    visit_cuda(c.out.dtype, "combine", [&]<class T>() {
      combine_groups<T><<<blocks_for(ex, ceil_div(count, kGroup), kCombineThreads), kCombineThreads,
                          0, stream_of(ex)>>>(parts, c.op, count, wide, data_of<T>(c.out));
    });
  }
  check_launch("combine");
}

}  // namespace bev::cuda
