// The cases of `bench op`: every op of a training step, at each shape and in each variant that the
// configured step has.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "bench/measure.h"
#include "config/config.h"
#include "config/resolve.h"
#include "ops/elementwise.h"

namespace bev {

// What the cases of `bench op` are made of: the shapes of a configured training step, and operands
// in the dtypes that such a step has.

// Values vary; sums that are divided by or whose root is taken do not.
class CaseOperands {
 public:
  // REQUIRES: a checked configuration. Both outlive this.
  CaseOperands(OpRig& rig, const Config& config);

  const Config& config;
  const ModelShape model;
  const BatchShape batch;
  const DType dtype;        // of values
  const DType sums;         // of statistics and of the gradients of vectors
  const int64_t tokens;     // of a micro-batch; of its longer texts if samples have two
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
  // i64 [rows, columns], as given.
  Tensor table(const std::vector<int64_t>& given, int64_t columns) const;
  // i32 [count], drawn from 0 to `below`.
  Tensor ids(int64_t count, int64_t below) const;
  // i32 [tokens]: the place of each in its sequence.
  Tensor positions() const;
  // Of the tokens of a micro-batch.
  ops::Dropout dropout(double probability) const;

 private:
  OpRig& rig_;
};

// `run` issues the op on operands that lie in the rig. It can be repeated any number of times: what
// it writes in place may grow by a constant from call to call, never by a factor.
struct OpCase {
  std::string shape;
  std::function<void(Exec&)> run;
};

// The op without dropout and, where the model has it, with it.
template <class Op>
std::vector<OpCase> with_and_without_dropout(const CaseOperands& o, const std::string& shape, Op op,
                                             double probability, void (*issue)(Exec&, const Op&)) {
  std::vector<OpCase> cases{{shape, [=](Exec& ex) { issue(ex, op); }}};
  if (probability == 0) return cases;
  const ops::Dropout d = o.dropout(probability);
  op.dropout = {.probability = d.probability, .key = d.key, .rows = d.rows};
  cases.push_back({format("{} dropout {}", shape, probability), [=](Exec& ex) { issue(ex, op); }});
  return cases;
}

struct BenchedOp {
  std::string_view name;  // as traces call it
  // Empty when the configured step does not have the op.
  std::vector<OpCase> (*cases)(const CaseOperands&);
};

// All of them, in the order of a step.
std::span<const BenchedOp> benched_ops();

// matmul_cases.cpp
std::vector<OpCase> matmul_cases(const CaseOperands& o);

// norm_cases.cpp
std::vector<OpCase> norm_cases(const CaseOperands& o);
std::vector<OpCase> residual_norm_cases(const CaseOperands& o);
std::vector<OpCase> norm_backward_cases(const CaseOperands& o);

// op_cases.cpp
std::vector<OpCase> residual_add_cases(const CaseOperands& o);
std::vector<OpCase> scale_cases(const CaseOperands& o);
std::vector<OpCase> dropout_cases(const CaseOperands& o);

// attention_cases.cpp
std::vector<OpCase> attention_cases(const CaseOperands& o);
std::vector<OpCase> attention_backward_cases(const CaseOperands& o);
std::vector<OpCase> relative_bias_cases(const CaseOperands& o);
std::vector<OpCase> relative_bias_backward_cases(const CaseOperands& o);
std::vector<OpCase> rope_cases(const CaseOperands& o);

// op_cases.cpp
std::vector<OpCase> activate_cases(const CaseOperands& o);
std::vector<OpCase> activate_backward_cases(const CaseOperands& o);

// op_cases.cpp
std::vector<OpCase> embedding_cases(const CaseOperands& o);
std::vector<OpCase> embedding_backward_cases(const CaseOperands& o);

// op_cases.cpp
std::vector<OpCase> top_k_hits_cases(const CaseOperands& o);
std::vector<OpCase> softmax_stats_cases(const CaseOperands& o);
std::vector<OpCase> cross_entropy_cases(const CaseOperands& o);
std::vector<OpCase> weighted_sum_cases(const CaseOperands& o);

// update_cases.cpp
std::vector<OpCase> fill_cases(const CaseOperands& o);
std::vector<OpCase> copy_cases(const CaseOperands& o);
std::vector<OpCase> squared_norm_cases(const CaseOperands& o);
std::vector<OpCase> loss_factors_cases(const CaseOperands& o);
std::vector<OpCase> decide_update_cases(const CaseOperands& o);
std::vector<OpCase> adamw_cases(const CaseOperands& o);
std::vector<OpCase> sgd_cases(const CaseOperands& o);
std::vector<OpCase> lamb_moments_cases(const CaseOperands& o);
std::vector<OpCase> sum_segments_cases(const CaseOperands& o);
std::vector<OpCase> lamb_ratios_cases(const CaseOperands& o);
std::vector<OpCase> lamb_update_cases(const CaseOperands& o);

}  // namespace bev
