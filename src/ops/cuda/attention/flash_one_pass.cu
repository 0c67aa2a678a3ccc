#include "ops/cuda/attention/attention_problem.cuh"
#include "ops/cuda/attention/flash_attention.h"
#include "ops/cuda/attention/flash_dkdv_pass.cuh"
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

// `memory`: query_gradient_bytes of it, aligned to 16 bytes.
DqAccumulator cleared_query_gradient(Exec& ex, const ops::AttentionBackward& a, void* memory) {
  check_cuda(cudaMemsetAsync(memory, 0, query_gradient_bytes(a), stream_of(ex)),
             "attention_backward");
  return {static_cast<float*>(memory), static_cast<int>(a.q.shape[0] / a.sequences),
          static_cast<int>(query_chunks(a))};
}

// a.dq = factor * gradient. REQUIRES: bf16 or f16.
void store_query_gradient(Exec& ex, const ops::AttentionBackward& a, const DqAccumulator& gradient,
                          double factor) {
  if (a.q.dtype == DType::bf16) {
    store<__nv_bfloat16>(ex, a, gradient, factor);
  } else {
    store<__half>(ex, a, gradient, factor);
  }
}

template <class T>
void backward(Exec& ex, const ops::AttentionBackward& a, const SoftmaxDelta* rows,
              const DqAccumulator& gradient) {
  const BackwardArgs<T> args = backward_args<T>(a, rows);
  const AttentionProblem& p = args.p;
  visit_tile(p.head_dim, p.drops, [&]<int D, bool kDropout> {
    using Size = KeyPass<D, true>;
    const auto kernel = args.bias.data != nullptr ? flash_key_kernel<T, D, kDropout, true, true>
                                                  : flash_key_kernel<T, D, kDropout, true, false>;
    launch("attention_backward", kernel, ceil_div(p.keys, Size::kKeys) * p.sequences * p.kv_heads,
           Size::kThreads, Size::kSharedBytes, stream_of(ex), args, gradient);
  });
}

}  // namespace

bool one_pass_fits(const ops::AttentionBackward& a) {
  int device = 0, most = 0, needed = 0;
  check_cuda(cudaGetDevice(&device), "attention_backward");
  check_cuda(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
             "attention_backward");
  visit_tile(static_cast<int>(a.q.shape[2]), false,
             [&]<int D, bool> { needed = KeyPass<D, true>::kSharedBytes; });
  return needed <= most;
}

void flash_one_pass(Exec& ex, const ops::AttentionBackward& a, const SoftmaxDelta* rows,
                    void* memory) {
  const DqAccumulator gradient = cleared_query_gradient(ex, a, memory);
  if (a.q.dtype == DType::bf16) {
    backward<__nv_bfloat16>(ex, a, rows, gradient);
  } else {
    backward<__half>(ex, a, rows, gradient);
  }
  store_query_gradient(ex, a, gradient, a.scale / (1 - a.dropout.probability));
}

}  // namespace bev::cuda
