// A comparison of two layouts as people and programs read it.
#pragma once

#include <string>

#include "verify/run_comparison.h"

namespace bev {

struct VerifyReport {
  std::string layouts[2];
  DeviceKind device{};
  double tolerance = 0;
  Comparison comparison{};
};

// Losses and gradient norms of each step, and the tensors with the largest differences.
std::string verify_table(const VerifyReport& report);

// The same numbers as JSON, of all tensors of every step.
std::string verify_json(const VerifyReport& report);

// "the layouts agree: largest difference 3.1e-15 (layers.3.mlp.up.weight) within 1e-12"
std::string agreement_text(const VerifyReport& report);
// "they differ: first in layers.3.mlp.up.weight at step 1: ..."
std::string difference_text(const Difference& difference, double tolerance);

}  // namespace bev
