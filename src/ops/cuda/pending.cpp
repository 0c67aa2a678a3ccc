// Not written yet.
#include "base/check.h"
#include "ops/cuda/ops.h"

namespace bev::cuda {

#define PENDING(op, args) \
  void op(Exec&, const args&) { throw Error(ErrorKind::Internal, "cuda: " #op " is pending"); }
PENDING(norm, ops::Norm)
PENDING(residual_norm, ops::ResidualNorm)
PENDING(norm_backward, ops::NormBackward)
PENDING(dropout, ops::DropoutApply)
PENDING(residual_add, ops::ResidualAdd)
PENDING(rope, ops::Rope)
PENDING(activate, ops::Activate)
PENDING(activate_backward, ops::ActivateBackward)
PENDING(embedding, ops::Embedding)
PENDING(embedding_backward, ops::EmbeddingBackward)
PENDING(softmax_stats, ops::SoftmaxStats)
PENDING(cross_entropy, ops::CrossEntropy)
PENDING(copy, ops::Copy)
PENDING(fill, ops::Fill)
PENDING(squared_norm, ops::SquaredNorm)
PENDING(weighted_sum, ops::WeightedSum)

}  // namespace bev::cuda
