#include "ops/op_table.h"

#include "ops/cuda/workspace.h"

namespace bev {

namespace {

bool never(Exec&, const ops::DecodeGemm&) { return false; }

template <class Args>
void nothing(Exec&, const Args&) {}

template <class Args>
void book(Exec& ex, const Args& args) {
  ArenaScope scope(ex.scratch);
  cuda::workspace_of(ex, args, "workspace");
}

}  // namespace

const OpTable kReferenceOps{
#define BEV_OP(name, Args) .name = reference::name,
#include "ops/op_list.inc"
#undef BEV_OP
    .can_fuse_norm = never,
};

const OpTable kCpuOps{
#define BEV_OP(name, Args) .name = cpu::name,
#include "ops/op_list.inc"
#undef BEV_OP
    .can_fuse_norm = never,
};

#ifdef BEV_HAS_CUDA
const OpTable kCudaOps{
#define BEV_OP(name, Args) .name = cuda::name,
#include "ops/op_list.inc"
#undef BEV_OP
    .can_fuse_norm = cuda::can_fuse_norm,
};
#endif

const OpTable kNullOps{
#define BEV_OP(name, Args) .name = nothing<ops::Args>,
#include "ops/op_list.inc"
#undef BEV_OP
    .can_fuse_norm = never,
};

const OpTable kNullCudaOps = [] {
  OpTable table = kNullOps;
  table.matmul = book<ops::Matmul>;
  table.attention = book<ops::Attention>;
  table.attention_backward = book<ops::AttentionBackward>;
  table.norm_backward = book<ops::NormBackward>;
  table.embedding_backward = book<ops::EmbeddingBackward>;
  table.squared_norm = book<ops::SquaredNorm>;
  table.weighted_sum = book<ops::WeightedSum>;
  table.decode_gemm = book<ops::DecodeGemm>;
  table.decode_attention = book<ops::DecodeAttention>;
  table.sample_tokens = book<ops::SampleTokens>;
  return table;
}();

}  // namespace bev
