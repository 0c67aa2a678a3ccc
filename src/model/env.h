// What modules share besides tensors: the borders, and what the step is doing.
#pragma once

#include <vector>

#include "base/philox.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "parallel/attention_core.h"
#include "parallel/tensor_region.h"
#include "param/grad_sink.h"
#include "param/param_gather.h"

namespace bev {

// A GEMM that is added to param.grad, or is the first of a step there.
struct DeferredWeightGrad {
  Param* param;
  ops::Matmul gemm;

  void compute(Exec& ex) {
    gemm.accumulate = param->accumulate();
    ops::matmul(ex, gemm);
  }
};

struct ModelEnv {
  TensorRegion tensor;
  AttentionCore& attention;
  bool training = true;           // dropout is drawn
  bool weights_constant = false;  // weights have long been written when a pass begins, and stay; no
                                  // backward pass follows
  double grad_scale = 1;          // of the loss: 1 / valid tokens of the whole batch
  ConstTensor loss_scale{};       // f64 [1], may be absent: 1
  Tensor loss{};  // f64 [2]: the sum of weighted token losses, the sum of weights; added to
  // [tokens] of the accumulation type, may be absent: the loss of each token, whatever its weight.
  Tensor token_losses{};
  // [tokens, ops::kSoftmaxStats] of the accumulation type, may be absent: of the logits of each
  // token.
  Tensor token_stats{};
  // Ids that may follow a token; 0: all rows of the head, its padding too. REQUIRES: not in
  // training, and every rank holds one of them.
  int64_t classes = 0;
  // Where weight gradients go that shall be computed later; null: none shall.
  std::vector<DeferredWeightGrad>* deferred_weight_grads = nullptr;

  // Before values of the bucket's parameters are read. Null: they are always there.
  ParamGather* param_gather = nullptr;
  void begin_gathers(const std::vector<int>& needed) const {
    if (param_gather != nullptr) param_gather->set_order(needed);
  }
  void gather(Exec& ex, int bucket) const {
    if (param_gather != nullptr) param_gather->gather(ex, bucket);
  }

  // Null: nobody wants to know.
  GradSink* sink = nullptr;
  bool is_last_micro = false;  // of the step, in this stage and direction
  bool streams_grad_buckets() const { return sink != nullptr && sink->streams_buckets(); }
  void begin_bucket_grads(Exec& ex, int bucket) const {
    if (sink != nullptr) sink->begin_bucket_grads(ex, bucket);
  }
  // `returns`: this micro-batch adds more to it later.
  void end_bucket_grads(Exec& ex, int bucket, bool returns = false) const {
    if (sink != nullptr)
      sink->end_bucket_grads(ex, bucket,
                             is_last_micro && deferred_weight_grads == nullptr && !returns);
  }

  // Where a backward puts what GEMMs of weight gradients read.
  Arena& operands(Exec& ex) const {
    return deferred_weight_grads != nullptr ? ex.keep : ex.scratch;
  }
};

// Computes it now, or keeps it for a bubble: its arguments are plain data.
inline void weight_grad(Exec& ex, ModelEnv& env, Param& param, const ops::Matmul& gemm) {
  DeferredWeightGrad gradient{&param, gemm};
  if (env.deferred_weight_grads != nullptr) {
    env.deferred_weight_grads->push_back(gradient);
  } else {
    gradient.compute(ex);
  }
}

// The places where dropout is drawn; part of the key, so that no two draw alike.
enum class DropoutSite : uint8_t { Embedding, Probabilities, Attention, Mlp };

inline uint64_t dropout_key(uint64_t seed, int64_t layer, DropoutSite site) {
  return mix_key(mix_key(mix_key(seed, "dropout"), static_cast<uint64_t>(layer)),
                 static_cast<uint64_t>(site));
}

}  // namespace bev
