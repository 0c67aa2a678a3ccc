#include "ops/cuda/attention/attention_problem.cuh"
#include "ops/cuda/attention/flash_attention.h"
#include "ops/cuda/primitives/launch_kernel.cuh"

namespace bev::cuda {

namespace {

constexpr int kThreads = 256, kLanes = 8;  // lanes per row

template <class T>
struct RowArgs {
  HeadRows<const T> out, dout;
  const float* lse;
  int64_t lse_sequence, lse_head;
  int64_t rows;
  int queries, heads, head_dim;
  bool wide;
  SoftmaxDelta* sums;
};

template <class T>
__device__ __forceinline__ float dot(uint4 a, uint4 b) {
  constexpr int kElements = 16 / sizeof(T);
  const T* x = reinterpret_cast<const T*>(&a);
  const T* y = reinterpret_cast<const T*>(&b);
  float sum = 0;
#pragma unroll
  for (int e = 0; e < kElements; ++e) sum += to_float(x[e]) * to_float(y[e]);
  return sum;
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    query_sums_kernel(const __grid_constant__ RowArgs<T> a) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (kThreads / kLanes) + threadIdx.x / kLanes;
  const int lane = static_cast<int>(threadIdx.x % kLanes);
  // Heads of one query follow each other, as they do in memory.
  const int head = static_cast<int>(row % a.heads);
  const int64_t query = row / a.heads;
  float sum = 0;
  if (row < a.rows) {
    const T* out = a.out.at(query, head);
    const T* dout = a.dout.at(query, head);
    if (a.wide) {
      constexpr int kElements = 16 / sizeof(T);
      for (int c = lane * kElements; c < a.head_dim; c += kLanes * kElements) {
        sum += dot<T>(*reinterpret_cast<const uint4*>(out + c),
                      *reinterpret_cast<const uint4*>(dout + c));
      }
    } else {
      for (int c = lane; c < a.head_dim; c += kLanes) sum += to_float(out[c]) * to_float(dout[c]);
    }
  }
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset /= 2) {
    sum += __shfl_xor_sync(kAllLanes, sum, offset);
  }
  if (lane != 0 || row >= a.rows) return;
  const int64_t sequence = query / a.queries, inside = query % a.queries;
  const float lse = a.lse[sequence * a.lse_sequence + head * a.lse_head + inside];
  a.sums[(sequence * a.heads + head) * a.queries + inside] = {
      lse == -INFINITY ? INFINITY : lse * kLog2E, sum};
}

}  // namespace

void compute_query_sums(Exec& ex, const ops::AttentionBackward& a, SoftmaxDelta* rows) {
  visit_cuda(a.q.dtype, "attention_backward", [&]<class T> {
    const RowArgs<T> args{.out = head_rows<T>(a.out),
                          .dout = head_rows<T>(a.dout),
                          .lse = data_of<float>(a.lse),
                          .lse_sequence = a.lse.stride[0],
                          .lse_head = a.lse.stride[1],
                          .rows = a.q.shape[0] * a.q.shape[1],
                          .queries = static_cast<int>(a.q.shape[0] / a.sequences),
                          .heads = static_cast<int>(a.q.shape[1]),
                          .head_dim = static_cast<int>(a.q.shape[2]),
                          .wide = has_wide_rows(a.out) && has_wide_rows(a.dout),
                          .sums = rows};
    launch("attention_backward", query_sums_kernel<T>, ceil_div(args.rows, kThreads / kLanes),
           kThreads, 0, stream_of(ex), args);
  });
}

}  // namespace bev::cuda
