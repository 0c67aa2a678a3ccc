// The memory that ops of the cuda backend need besides their operands, as formulas of our own: the
// plan books what these say, the ops take exactly that from the scratch arena, and a library's
// candidate that wants more is refused. No CUDA header is needed here, so that planning works
// without.
#pragma once

#include <algorithm>

#include "ops/attention.h"
#include "ops/cuda/attention_choice.h"
#include "ops/cuda/query_sums.h"
#include "ops/embedding.h"
#include "ops/matmul.h"
#include "ops/norm.h"
#include "ops/reduce.h"

namespace bev::cuda {

// Of matrix products (cuBLASLt); allocated once with the device.
constexpr size_t kProductWorkspace = size_t{32} << 20;

inline size_t workspace_bytes(const ops::Attention& a, const DevicePolicy& policy) {
  return cudnn_may_serve(a, policy) ? cudnn_forward_budget(a) : 0;
}
inline size_t workspace_bytes(const ops::AttentionBackward& a, const DevicePolicy& policy) {
  const size_t ours = query_sums_bytes(a);
  return cudnn_may_serve(a, policy) ? std::max(ours, cudnn_backward_budget(a)) : ours;
}
inline size_t workspace_bytes(const ops::NormBackward&, const DevicePolicy&) { return 0; }
inline size_t workspace_bytes(const ops::EmbeddingBackward&, const DevicePolicy&) { return 0; }
inline size_t workspace_bytes(const ops::SquaredNorm&, const DevicePolicy&) { return 0; }
inline size_t workspace_bytes(const ops::WeightedSum&, const DevicePolicy&) { return 0; }
inline size_t workspace_bytes(const ops::Matmul&, const DevicePolicy&) { return 0; }

// The workspace of one call, from the scratch arena; absent when none is needed. It lasts until the
// caller's ArenaScope ends: what comes later on the stream may then use the memory.
template <class Args>
Tensor workspace_of(Exec& ex, const Args& args, const char* name) {
  const size_t bytes = workspace_bytes(args, ex.device.policy());
  if (bytes == 0) return {};
  return ex.scratch.allocate({static_cast<int64_t>(bytes)}, DType::u8, name);
}

}  // namespace bev::cuda
