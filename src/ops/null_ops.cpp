// The op table of planning: the checked fronts have counted, there is nothing to compute.
#include "ops/cuda/workspace.h"
#include "ops/op_table.h"

namespace bev {

namespace {

template <class Args>
void book(Exec& ex, const Args& args) {
  ArenaScope scope(ex.scratch);
  cuda::workspace_of(ex, args, "workspace");
}

}  // namespace

const OpTable kNullOps{
    .matmul = [](Exec&, const ops::Matmul&) {},
    .norms_on_the_way = [](Exec&, const ops::Matmul&) { return false; },
    .norm = [](Exec&, const ops::Norm&) {},
    .residual_norm = [](Exec&, const ops::ResidualNorm&) {},
    .norm_backward = [](Exec&, const ops::NormBackward&) {},
    .dropout = [](Exec&, const ops::DropoutApply&) {},
    .residual_add = [](Exec&, const ops::ResidualAdd&) {},
    .attention = [](Exec&, const ops::Attention&) {},
    .attention_backward = [](Exec&, const ops::AttentionBackward&) {},
    .rope = [](Exec&, const ops::Rope&) {},
    .activate = [](Exec&, const ops::Activate&) {},
    .activate_backward = [](Exec&, const ops::ActivateBackward&) {},
    .embedding = [](Exec&, const ops::Embedding&) {},
    .embedding_backward = [](Exec&, const ops::EmbeddingBackward&) {},
    .softmax_stats = [](Exec&, const ops::SoftmaxStats&) {},
    .merge_softmax_stats = [](Exec&, const ops::MergeSoftmaxStats&) {},
    .cross_entropy = [](Exec&, const ops::CrossEntropy&) {},
    .copy = [](Exec&, const ops::Copy&) {},
    .fill = [](Exec&, const ops::Fill&) {},
    .squared_norm = [](Exec&, const ops::SquaredNorm&) {},
    .weighted_sum = [](Exec&, const ops::WeightedSum&) {},
    .hash_bits = [](Exec&, const ops::HashBits&) {},
    .cache_write = [](Exec&, const ops::CacheWrite&) {},
    .decode_attention = [](Exec&, const ops::DecodeAttention&) {},
    .choose_tokens = [](Exec&, const ops::ChooseTokens&) {},
    .combine = [](Exec&, const ops::Combine&) {},
    .decide_update = [](Exec&, const ops::DecideUpdate&) {},
    .adamw = [](Exec&, const ops::AdamW&) {},
    .sgd = [](Exec&, const ops::Sgd&) {},
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
  table.decode_attention = book<ops::DecodeAttention>;
  table.choose_tokens = book<ops::ChooseTokens>;
  return table;
}();

}  // namespace bev
