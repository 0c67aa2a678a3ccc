// Tokens, learned positions and token types to hidden states.
#pragma once

#include <optional>
#include <vector>

#include "data/batch.h"
#include "model/norm.h"

namespace bev {

// The parameter of a table, in its own bucket. Equal names are one parameter.
Param& declare_table(ParamStore& params, const TableSpec& spec);

class Embedding {
 public:
  struct Saved {  // with a norm
    Tensor sum;
    NormModule::Saved norm;
  };

  Embedding(ParamStore& params, const EmbeddingSpec& spec);

  // In the order in which forward needs them.
  std::vector<int> buckets() const;

  // The bucket of the norm, whose values backward reads; none without a norm.
  std::optional<int> norm_bucket() const {
    return norm_ ? std::optional(norm_->bucket()) : std::nullopt;
  }

  // x [tokens, width] = dropout(norm(tokens[id] + positions[p] + types[t])); the local
  // tokens between regions.
  void forward(Exec& ex, ModelEnv& env, const TextView& text, Tensor x, Saved& s) const;
  // Overwrites dx.
  void backward(Exec& ex, ModelEnv& env, const TextView& text, Tensor dx, const Saved& s) const;

 private:
  DropoutSpec dropout_;
  Param& tokens_;
  Param *positions_, *types_;
  std::optional<NormModule> norm_;
};

}  // namespace bev
