// Two trainings of the same model, step by step and tensor by tensor.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "verify/layout_run.h"

namespace bev {

enum class Quantity : uint8_t { Gradient, Weight, Loss, GradientNorm };

// A relative difference: the norm of the difference over the norm of the second training's. For the
// values of a tensor over the largest norm up to this step: updates of a bias that starts at 0 may
// cancel, and what is left is rounding noise. 0 if both are equal; not finite if one of the two has
// numbers that are not.
struct Difference {
  double ratio = 0;
  int64_t step = 1;  // counted from 1
  Quantity quantity = Quantity::Gradient;
  std::string name{};  // of the tensor; empty for losses and norms
};

struct TensorDifference {
  std::string name;
  double grad = 0, value = 0;
};

struct Comparison {
  struct Step {
    double loss[2], norm[2];  // of the first training and of the second
    std::vector<TensorDifference> tensors;
  };
  std::vector<Step> steps;

  // In the order of discovery: the earliest step; in it the gradients before the values, both in
  // the order of the model, then loss and gradient norm.
  std::vector<Difference> all() const;
  // The first above the tolerance; one that is not a number is.
  std::optional<Difference> first_beyond(double tolerance) const;
  // One that is not a number counts as larger than any. REQUIRES: there is a step.
  Difference largest() const;
  // The tensors of the last step, those with the largest differences first. REQUIRES: as above.
  std::vector<TensorDifference> worst(size_t count) const;
};

// REQUIRES: as many steps of both, with the same tensors.
Comparison compare_runs(std::span<const StepOutcome> first, std::span<const StepOutcome> second);

// "layers.3.mlp.up.weight", "the loss".
std::string name_of(const Difference& difference);

// A comparison of two layouts as people and programs read it.

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
