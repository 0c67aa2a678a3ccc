#include "ops/cuda/attention/flash_attention.h"
#include "ops/cuda/attention/flash_dkdv_pass.cuh"
#include "ops/cuda/primitives/launch_kernel.cuh"

namespace bev::cuda {

namespace {

template <class T>
void backward(Exec& ex, const ops::AttentionBackward& a, const SoftmaxDelta* rows,
              const DqAccumulator& gradient) {
  const BackwardArgs<T> args = backward_args<T>(a, rows);
  const AttentionProblem& p = args.p;
  visit_tile(p.head_dim, p.drops, [&]<int D, bool kDropout> {
    using Size = KeyPass<D, true>;
    launch("attention_backward", flash_key_kernel<T, D, kDropout, true>,
           ceil_div(p.keys, Size::kKeys) * p.sequences * p.kv_heads, Size::kThreads,
           Size::kSharedBytes, stream_of(ex), args, gradient);
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
