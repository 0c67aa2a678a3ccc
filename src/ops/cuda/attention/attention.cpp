// Attention on the GPU: cuDNN where it may and can serve, our own kernels for everything else.
#include "ops/attention.h"

#include "base/check.h"
#include "ops/cuda/attention/attention_dispatch.h"
#include "ops/cuda/attention/cudnn_attention.h"
#include "ops/cuda/attention/flash_attention.h"
#include "ops/cuda/gpu.h"
#include "ops/cuda/workspace.h"
#include "ops/op_table.h"

namespace bev::cuda {

namespace {

// Why our kernels run these arguments; empty when cuDNN does.
template <class Args>
std::string why_ours(Gpu& gpu, const Args& a) {
  if (const char* why = why_not_cudnn(a, gpu.policy()); *why != '\0') return why;
  return gpu.cudnn() != nullptr ? gpu.cudnn()->why_not(a) : gpu.why_no_cudnn();
}

// Which of our kernels would.
std::string ours(const ops::Attention& a, const DevicePolicy&) {
  return tensor_cores_serve(a.q, a.scale) ? "own, tensor cores" : "own, f32";
}
std::string ours(const ops::AttentionBackward& a, const DevicePolicy& policy) {
  if (!tensor_cores_serve(a.q, a.scale)) return "own, f32";
  return flash_backward_is_one_pass(a, policy) ? "own, tensor cores, one pass"
                                               : "own, tensor cores, two passes";
}

const char* cudnn_with(const ops::Attention&) { return "cuDNN"; }
const char* cudnn_with(const ops::AttentionBackward& a) {
  return a.dbias.present() ? "cuDNN, gradient of the bias own" : "cuDNN";
}

template <class Args>
void note(Device& device, const char* op, const Args& a, const std::string& why) {
  if (!device.dispatch().enabled()) return;
  if (why.empty()) {
    device.dispatch().note(op, cudnn_with(a));
  } else {
    device.dispatch().note(op, ours(a, device.policy()), "cuDNN: " + why);
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
  note(gpu, "attention", a, why);
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
  note(gpu, "attention_backward", a, why);
  ArenaScope scope(ex.scratch);
  const Tensor workspace = workspace_of(ex, a, "attention_backward");
  if (why.empty()) {
    gpu.cudnn()->backward(ex, a, workspace);
    if (a.dbias.present()) flash_bias_gradient(ex, a, workspace);
  } else {
    flash_backward(ex, a, workspace);
  }
}

}  // namespace bev::cuda
