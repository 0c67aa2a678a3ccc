// Hidden states to loss. Logits exist for a chunk of tokens: the loss of the chunk, the gradient of
// its hidden states and its part of the weight gradient are computed before the next chunk starts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/batch.h"
#include "model/linear.h"
#include "model/norm.h"
#include "ops/cross_entropy.h"

namespace bev {

// Logits of a vocabulary shard, their loss and gradients.
class LogitLoss {
 public:
  LogitLoss(ParamStore& params, const LmHeadSpec& spec);

  const Param& weight() const { return weight_; }  // [local vocab, width]
  int bucket() const { return weight_.bucket; }

  // Adds the losses of the rows to env.losses. x [rows, width]. With dx also accumulates the weight
  // gradient and writes this member's term of the gradient of x. bias [local vocab], optional;
  // dbias receives the sums of its gradient. REQUIRES: with dx, env.pass.classes has all ids.
  void run(Exec& ex, ModelEnv& env, ConstTensor x, ConstTensor targets, ConstTensor weights,
           ConstTensor bias, Tensor dbias, Tensor dx) const;

 private:
  int loss_;  // in the list of the model
  int64_t chunk_, classes_;
  double smoothing_, z_loss_;
  Param& weight_;
};

// The bias of logits, sharded as they are.
class HeadBias {
 public:
  HeadBias(ParamStore& params, const std::string& name, int64_t classes);

  const Param& param() const { return bias_; }
  // The sums of the logits' gradient: zeros in scratch.
  Tensor begin_backward(Exec& ex) const;
  // Adds them to the gradient.
  void backward(Exec& ex, ConstTensor sums) const;

 private:
  Param& bias_;  // [local vocab]
};

class LmHead {
 public:
  LmHead(ParamStore& params, const LmHeadSpec& spec);

  // In the order in which forward gathers them.
  std::vector<int> gather_order() const;
  // Buckets of which it writes gradients.
  std::vector<int> grad_buckets() const { return gather_order(); }
  const Param& weight() const { return logits_.weight(); }
  const Param* bias() const { return bias_ ? &bias_->param() : nullptr; }
  double input_scale() const { return input_scale_; }

  // Adds the token losses to env.losses. With dx (training) also accumulates the weight gradient
  // and writes the gradient of x. x, dx [tokens, width]: between regions. Every member of the
  // region adds the losses of all tokens.
  void forward(Exec& ex, ModelEnv& env, const TextView& text, ConstTensor x, Tensor dx) const;

 private:
  LogitLoss logits_;
  double input_scale_;
  std::optional<HeadBias> bias_;
};

// The head of BERT: predicts the marked tokens only.
class MaskedLmHead {
 public:
  MaskedLmHead(ParamStore& params, const MaskedLmHeadSpec& spec);

  // In the order in which forward gathers them.
  std::vector<int> gather_order() const { return {bucket_, logits_.bucket(), bucket_}; }
  // Buckets of which it writes gradients.
  std::vector<int> grad_buckets() const { return {logits_.bucket(), bucket_}; }
  const Param& weight() const { return logits_.weight(); }
  const Param& bias() const { return bias_.param(); }

  // The input of the logits, norm(activation(dense(row))), with what its backward reads.
  struct Transformed {
    Tensor rows{}, argument{}, activated{}, normed{};  // [ids, width], in scratch
    NormModule::Saved norm{};
  };
  // Transforms the rows `ids` of the hidden state x of `tokens` tokens; every member of the region
  // transforms all of them.
  Transformed transform(Exec& ex, const ModelEnv& env, int64_t tokens, ConstTensor x,
                        ConstTensor ids) const;

  // As LmHead::forward, for the marked rows of the text. Every member of the region computes
  // the dense layer and the norm for all of these rows.
  void forward(Exec& ex, ModelEnv& env, const TextView& text, ConstTensor x, Tensor dx) const;

 private:
  LogitLoss logits_;
  int bucket_;
  Activation activation_;
  ReplicatedLinear dense_;
  NormModule norm_;
  HeadBias bias_;
};

// Classifies sequences by their first token (BERT's pooler and binary head).
class Classifier {
 public:
  Classifier(ParamStore& params, const ClassifierSpec& spec);

  int bucket() const { return bucket_; }

  // The logits of the sequences, output(tanh(pooler(row))), with what their backward reads.
  struct Classified {
    Tensor rows{}, argument{}, pooled{};  // [ids, width], in scratch
    Tensor logits{};                      // [ids, classes], in scratch
  };
  // Classifies the rows `ids` of the hidden state x of `tokens` tokens; every member of the region
  // classifies all of them.
  Classified classify(Exec& ex, const ModelEnv& env, int64_t tokens, ConstTensor x,
                      ConstTensor ids) const;

  // Adds the losses of the sequences to env.losses; with dx (training) also accumulates gradients
  // and writes the gradient of x.
  void forward(Exec& ex, ModelEnv& env, const TextView& text, ConstTensor x, Tensor dx) const;

 private:
  int bucket_, loss_;
  int64_t classes_;
  ReplicatedLinear pooler_, output_;
};

}  // namespace bev
