// The cases of `bench op`: every op of a training step, at each shape and in each variant that the
// configured step has.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/case_operands.h"

namespace bev {

// `run` issues the op on operands that lie in the rig. It can be repeated any number of times: what
// it writes in place may grow by a constant from call to call, never by a factor.
struct OpCase {
  std::string shape;
  std::function<void(Exec&)> run;
};

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

// residual_cases.cpp
std::vector<OpCase> residual_add_cases(const CaseOperands& o);
std::vector<OpCase> dropout_cases(const CaseOperands& o);

// attention_cases.cpp
std::vector<OpCase> attention_cases(const CaseOperands& o);
std::vector<OpCase> attention_backward_cases(const CaseOperands& o);
std::vector<OpCase> rope_cases(const CaseOperands& o);

// activation_cases.cpp
std::vector<OpCase> activate_cases(const CaseOperands& o);
std::vector<OpCase> activate_backward_cases(const CaseOperands& o);

// embedding_cases.cpp
std::vector<OpCase> embedding_cases(const CaseOperands& o);
std::vector<OpCase> embedding_backward_cases(const CaseOperands& o);

// loss_cases.cpp
std::vector<OpCase> softmax_stats_cases(const CaseOperands& o);
std::vector<OpCase> cross_entropy_cases(const CaseOperands& o);
std::vector<OpCase> weighted_sum_cases(const CaseOperands& o);

// update_cases.cpp
std::vector<OpCase> fill_cases(const CaseOperands& o);
std::vector<OpCase> squared_norm_cases(const CaseOperands& o);
std::vector<OpCase> decide_update_cases(const CaseOperands& o);
std::vector<OpCase> adamw_cases(const CaseOperands& o);
std::vector<OpCase> sgd_cases(const CaseOperands& o);

}  // namespace bev
