// Tokens (and learned positions) to hidden states.
#pragma once

#include <vector>

#include "data/batch.h"
#include "model/env.h"

namespace bev {

// The parameter of a table, in its own bucket. Equal names are one parameter.
Param& declare_table(ParamStore& params, const TableSpec& spec);

class Embedding {
 public:
  Embedding(ParamStore& params, const EmbeddingSpec& spec);

  // In the order in which forward needs them.
  std::vector<int> buckets() const;

  // x [tokens, width] = dropout(tokens[id] + positions[p]); the tokens of this rank between
  // regions.
  void forward(Exec& ex, ModelEnv& env, const MicroBatch& micro, Tensor x) const;
  // Overwrites dx.
  void backward(Exec& ex, ModelEnv& env, const MicroBatch& micro, Tensor dx) const;

 private:
  DropoutSpec dropout_;
  Param& tokens_;
  Param* positions_;
};

}  // namespace bev
