// Tokens (and learned positions) to hidden states.
#pragma once

#include "data/batch.h"
#include "model/env.h"
#include "model/model_spec.h"

namespace bev {

// The table of the tokens. Where the head is tied to it and on another stage, both hold it.
ParamSpec token_table(const ModelSpec& b);

class Embedding {
 public:
  Embedding(ParamStore& params, const ModelSpec& b);

  // x [tokens, width] = dropout(tokens[id] + positions[p]); tokens: of this rank between regions.
  void forward(Exec& ex, ModelEnv& env, const MicroBatch& micro, Tensor x) const;
  std::vector<int> buckets() const;  // that forward needs, in this order
  // dx is used up.
  void backward(Exec& ex, ModelEnv& env, const MicroBatch& micro, Tensor dx);

 private:
  ops::Dropout dropout(const ModelEnv& env, const MicroBatch& micro) const;

  double dropout_;
  uint64_t dropout_key_;
  Param& tokens_;
  Param* positions_;
};

}  // namespace bev
