// Attention on the GPU: cuDNN where it may and can serve, our own kernels for everything else.
#include "ops/attention.h"

#include "base/check.h"
#include "ops/cuda/attention_choice.h"
#include "ops/cuda/cudnn_attention.h"
#include "ops/cuda/flash_attention.h"
#include "ops/cuda/gpu.h"
#include "ops/cuda/ops.h"
#include "ops/cuda/workspace.h"

namespace bev::cuda {

namespace {

// Why our kernels run these arguments; empty when cuDNN does.
template <class Args>
std::string why_ours(Gpu& gpu, const Args& a) {
  if (const char* why = why_not_cudnn(a, gpu.policy()); *why != '\0') return why;
  return gpu.cudnn() != nullptr ? gpu.cudnn()->why_not(a) : gpu.why_no_cudnn();
}

void note(Device& device, const char* op, const ConstTensor& q, double scale,
          const std::string& why) {
  if (!device.dispatch().enabled()) return;
  if (why.empty()) {
    device.dispatch().note(op, "cuDNN");
  } else {
    device.dispatch().note(op, tensor_cores_serve(q, scale) ? "own, tensor cores" : "own, f32",
                           "cuDNN: " + why);
  }
}

}  // namespace

void check_attention_size(int64_t queries, int64_t keys, int64_t offset) {
  BEV_CHECK(queries < kAttentionLimit && keys < kAttentionLimit && offset < kAttentionLimit &&
                offset > -kAttentionLimit,
            Usage, "attention: {} queries, {} keys, offset {}: the cuda device takes less than {}",
            queries, keys, offset, kAttentionLimit);
}

void attention(Exec& ex, const ops::Attention& a) {
  Gpu& gpu = gpu_of(ex);
  const std::string why = why_ours(gpu, a);
  note(gpu, "attention", a.q, a.scale, why);
  ArenaScope scope(ex.scratch);
  const Tensor workspace = workspace_of(ex, a, "attention");
  if (why.empty()) {
    gpu.cudnn()->forward(ex, a, workspace);
  } else {
    flash_forward(ex, a, workspace);
  }
}

void attention_backward(Exec& ex, const ops::AttentionBackward& a) {
  Gpu& gpu = gpu_of(ex);
  const std::string why = why_ours(gpu, a);
  note(gpu, "attention_backward", a.q, a.scale, why);
  ArenaScope scope(ex.scratch);
  const Tensor workspace = workspace_of(ex, a, "attention_backward");
  if (why.empty()) {
    gpu.cudnn()->backward(ex, a, workspace);
  } else {
    flash_backward(ex, a, workspace);
  }
}

}  // namespace bev::cuda
