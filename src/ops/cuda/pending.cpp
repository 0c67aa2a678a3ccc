// Not written yet.
#include "base/check.h"
#include "ops/cuda/cudnn_attention.h"
#include "ops/cuda/gpu.h"
#include "ops/cuda/ops.h"

namespace bev::cuda {

#define PENDING(op, args) \
  void op(Exec&, const args&) { throw Error(ErrorKind::Internal, "cuda: " #op " is pending"); }
PENDING(attention, ops::Attention)
PENDING(attention_backward, ops::AttentionBackward)

struct CudnnAttention::State {};
CudnnAttention::~CudnnAttention() = default;
std::unique_ptr<CudnnAttention> CudnnAttention::load(Gpu&, std::string& why) {
  why = "not written yet";
  return nullptr;
}

}  // namespace bev::cuda
