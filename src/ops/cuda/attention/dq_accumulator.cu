#include "ops/cuda/attention/attention_problem.cuh"
#include "ops/cuda/attention/dq_accumulator.cuh"
#include "ops/cuda/primitives/launch_kernel.cuh"
#include "ops/cuda/primitives/vector_rows.cuh"

namespace bev::cuda {

namespace {

constexpr int kThreads = 256, kLanes = 8;  // lanes per row

template <class T>
struct StoreArgs {
  DqAccumulator gradient;
  HeadRows<T> dq;
  int64_t rows;
  int heads, head_dim;
  float factor;
  bool wide;
};

template <class T>
__global__ void __launch_bounds__(kThreads)
    store_query_gradient_kernel(const __grid_constant__ StoreArgs<T> a) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (kThreads / kLanes) + threadIdx.x / kLanes;
  if (row >= a.rows) return;
  // Queries of one head follow each other, as their sums do.
  const int64_t head = row / a.gradient.queries;
  const auto query = static_cast<int>(row - head * a.gradient.queries);
  const int64_t sequence = head / a.heads;
  T* to = a.dq.at(sequence * a.gradient.queries + query, head - sequence * a.heads);
  for (int column = static_cast<int>(threadIdx.x) % kLanes * kGroup; column < a.head_dim;
       column += kLanes * kGroup) {
    const float* from =
        a.gradient.at(head, column / kQueryChunk, query) + column % kQueryChunk / kGroup * 2;
    float values[kGroup];
#pragma unroll
    for (int t = 0; t < kGroup / 2; ++t) {
      const float2 pair = *reinterpret_cast<const float2*>(from + 4 * t);
      values[2 * t] = pair.x * a.factor;
      values[2 * t + 1] = pair.y * a.factor;
    }
    store_group(Group<T>::of(values), to, column, a.head_dim, a.wide);
  }
}

template <class T>
void store(Exec& ex, const ops::AttentionBackward& a, const DqAccumulator& gradient,
           double factor) {
  const StoreArgs<T> args{.gradient = gradient,
                          .dq = head_rows<T>(a.dq),
                          .rows = a.q.shape[0] * a.q.shape[1],
                          .heads = static_cast<int>(a.q.shape[1]),
                          .head_dim = static_cast<int>(a.q.shape[2]),
                          .factor = static_cast<float>(factor),
                          .wide = has_wide_rows(a.dq)};
  launch("attention_backward", store_query_gradient_kernel<T>,
         ceil_div(args.rows, kThreads / kLanes), kThreads, 0, stream_of(ex), args);
}

}  // namespace

DqAccumulator cleared_query_gradient(Exec& ex, const ops::AttentionBackward& a, void* memory) {
  check_cuda(cudaMemsetAsync(memory, 0, query_gradient_bytes(a), stream_of(ex)),
             "attention_backward");
  return {static_cast<float*>(memory), static_cast<int>(a.q.shape[0] / a.sequences),
          static_cast<int>(query_chunks(a))};
}

void store_query_gradient(Exec& ex, const ops::AttentionBackward& a, const DqAccumulator& gradient,
                          double factor) {
  if (a.q.dtype == DType::bf16) {
    store<__nv_bfloat16>(ex, a, gradient, factor);
  } else {
    store<__half>(ex, a, gradient, factor);
  }
}

}  // namespace bev::cuda
