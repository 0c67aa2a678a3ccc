// The op table of planning: the checked fronts have counted, there is nothing to compute.
#include "ops/op_table.h"

namespace bev {

const OpTable kNullOps{
    .matmul = [](Exec&, const ops::Matmul&) {},
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
    .cross_entropy = [](Exec&, const ops::CrossEntropy&) {},
    .copy = [](Exec&, const ops::Copy&) {},
    .fill = [](Exec&, const ops::Fill&) {},
    .squared_norm = [](Exec&, const ops::SquaredNorm&) {},
    .weighted_sum = [](Exec&, const ops::WeightedSum&) {},
    .update_control = [](Exec&, const ops::UpdateControl&) {},
    .adamw = [](Exec&, const ops::AdamW&) {},
    .sgd = [](Exec&, const ops::Sgd&) {},
};

}  // namespace bev
