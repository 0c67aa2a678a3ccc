// What a backend provides: one typed function pointer per op. A wrong signature does not compile; a
// null entry is found by a test.
#pragma once

#include "ops/activation.h"
#include "ops/attention.h"
#include "ops/combine.h"
#include "ops/cross_entropy.h"
#include "ops/decode_attention.h"
#include "ops/dropout.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/matmul.h"
#include "ops/norm.h"
#include "ops/reduce.h"
#include "ops/rope.h"
#include "ops/sampling.h"
#include "ops/update.h"

namespace bev {

// Backends may assume arguments that the checked fronts (ops/*.cpp) have accepted.
struct OpTable {
  void (*matmul)(Exec&, const ops::Matmul&);
  // Whether matmul() takes these arguments with their norm.
  bool (*norms_on_the_way)(Exec&, const ops::Matmul&);
  void (*norm)(Exec&, const ops::Norm&);
  void (*residual_norm)(Exec&, const ops::ResidualNorm&);
  void (*norm_backward)(Exec&, const ops::NormBackward&);
  void (*dropout)(Exec&, const ops::DropoutApply&);
  void (*residual_add)(Exec&, const ops::ResidualAdd&);
  void (*attention)(Exec&, const ops::Attention&);
  void (*attention_backward)(Exec&, const ops::AttentionBackward&);
  void (*rope)(Exec&, const ops::Rope&);
  void (*activate)(Exec&, const ops::Activate&);
  void (*activate_backward)(Exec&, const ops::ActivateBackward&);
  void (*embedding)(Exec&, const ops::Embedding&);
  void (*embedding_backward)(Exec&, const ops::EmbeddingBackward&);
  void (*softmax_stats)(Exec&, const ops::SoftmaxStats&);
  void (*merge_softmax_stats)(Exec&, const ops::MergeSoftmaxStats&);
  void (*cross_entropy)(Exec&, const ops::CrossEntropy&);
  void (*copy)(Exec&, const ops::Copy&);
  void (*fill)(Exec&, const ops::Fill&);
  void (*squared_norm)(Exec&, const ops::SquaredNorm&);
  void (*weighted_sum)(Exec&, const ops::WeightedSum&);
  void (*hash_bits)(Exec&, const ops::HashBits&);
  void (*cache_write)(Exec&, const ops::CacheWrite&);
  void (*decode_attention)(Exec&, const ops::DecodeAttention&);
  void (*choose_tokens)(Exec&, const ops::ChooseTokens&);
  void (*combine)(Exec&, const ops::Combine&);
  void (*decide_update)(Exec&, const ops::DecideUpdate&);
  void (*adamw)(Exec&, const ops::AdamW&);
  void (*sgd)(Exec&, const ops::Sgd&);
};

extern const OpTable kReferenceOps, kCpuOps, kNullOps;
extern const OpTable kNullCudaOps;  // books the workspaces of the cuda backend
extern const OpTable kCudaOps;      // in builds with CUDA

}  // namespace bev
