// What the cases of `bench op` are made of: the shapes of a configured training step, and operands
// in the dtypes that such a step has.
#pragma once

#include <vector>

#include "bench/op_rig.h"
#include "config/config.h"
#include "config/resolve.h"
#include "ops/dropout.h"

namespace bev {

// Values vary; sums that are divided by or whose root is taken do not.
class CaseOperands {
 public:
  // REQUIRES: a checked configuration. Both outlive this.
  CaseOperands(Rig& rig, const Config& config);

  const Config& config;
  const ModelShape model;
  const BatchShape batch;
  const DType dtype;        // of values
  const DType sums;         // of statistics and of the gradients of vectors
  const int64_t tokens;     // of a micro-batch
  const int64_t loss_rows;  // tokens whose logits exist at a time
  const int64_t inner;      // what the first matrix of the MLP gives: with a gate twice ffn

  Tensor value(Shape shape) const { return rig_.make_varied(shape, dtype); }
  Tensor sum(Shape shape) const { return filled(shape, sums, 0.5); }
  Tensor filled(Shape shape, DType of, double content) const;
  // Of a matrix.
  Tensor gradient(Shape shape) const { return state(shape, config.optim.gradients); }
  Tensor state(Shape shape, StatePrecision precision) const;

  // f64, as given.
  Tensor numbers(const std::vector<double>& given) const;
  // i32 [count], drawn from 0 to `below`.
  Tensor ids(int64_t count, int64_t below) const;
  // i32 [tokens]: the place of each in its sequence.
  Tensor positions() const;
  // Of the tokens of a micro-batch.
  ops::Dropout dropout(double probability) const;

 private:
  Rig& rig_;
};

}  // namespace bev
