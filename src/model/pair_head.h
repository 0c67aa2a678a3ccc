// The loss of a bi-encoder: each query is compared with the contexts of all pairs of the batch.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "device/memory.h"
#include "model/linear.h"

namespace bev {

class PairHead {
 public:
  // The output of a tower, and where its gradient is written.
  struct Tower {
    const TextView& text;
    ConstTensor x;
    Tensor dx{};  // absent: no gradient
  };

  PairHead(ParamStore& params, const PairHeadSpec& spec);

  // Absent without projections.
  std::optional<int> bucket() const { return bucket_; }

  // The embeddings of sequences: their first tokens, projected. Every member of the region has all
  // of them.
  struct Embedded {
    Tensor rows{};    // [sequences, width], in scratch
    Tensor values{};  // [sequences, embedding], in scratch; the rows if nothing is projected
  };
  Embedded embed(Exec& ex, const ModelEnv& env, size_t tower, const TextView& text,
                 ConstTensor x) const;

  // Adds loss and accuracies of the pairs to env.losses. With dx (training) also accumulates the
  // gradients of the projections and writes the gradients of the towers' outputs. `towers`: that of
  // the queries and that of the contexts; or one, of queries and then contexts.
  void forward(Exec& ex, ModelEnv& env, std::span<const Tower> towers) const;

 private:
  void compare(Exec& ex, ModelEnv& env, ConstTensor weights, ConstTensor queries,
               ConstTensor contexts, Tensor dqueries, Tensor dcontexts) const;

  std::optional<int> bucket_;
  int64_t embedding_;
  double scale_;
  int loss_;
  std::vector<int64_t> top_k_;
  std::vector<ReplicatedLinear> projections_;  // by tower; empty: none
  Buffer buffer_;
  ConstTensor pairs_;  // i32: 0, 1, 2, ...
};

}  // namespace bev
