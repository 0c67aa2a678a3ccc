#include "verify/run_comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace bev {

namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// So that what is not a number is found by a comparison.
double or_infinite(double ratio) { return std::isnan(ratio) ? kInfinite : ratio; }

double relative(double x, double y) { return x == y ? 0 : or_infinite(std::abs((x - y) / y)); }

double relative(const std::vector<double>& x, const std::vector<double>& y,
                const FlatRange& noise) {
  double square = 0, norm = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    if (at >= noise.begin && at < noise.begin + noise.count) continue;
    square += (x[i] - y[i]) * (x[i] - y[i]);
    norm += y[i] * y[i];
  }
  return square == 0 ? 0 : or_infinite(std::sqrt(square / norm));
}

Comparison::Step compare(const StepOutcome& first, const StepOutcome& second) {
  Comparison::Step step{{first.loss, second.loss}, {first.norm, second.norm}, {}};
  BEV_CHECK(first.tensors.size() == second.tensors.size(), Internal, "{} tensors against {}",
            first.tensors.size(), second.tensors.size());
  for (size_t i = 0; i < second.tensors.size(); ++i) {
    const LogicalTensor &x = first.tensors[i], &y = second.tensors[i];
    BEV_CHECK(x.name == y.name && x.value.size() == y.value.size(), Internal,
              "{} of {} elements against {} of {}", x.name, x.value.size(), y.name, y.value.size());
    step.tensors.push_back(
        {y.name, relative(x.grad, y.grad, y.noise), relative(x.value, y.value, y.noise)});
  }
  return step;
}

}  // namespace

Comparison compare(std::span<const StepOutcome> first, std::span<const StepOutcome> second) {
  BEV_CHECK(first.size() == second.size(), Internal, "{} steps against {}", first.size(),
            second.size());
  Comparison result;
  for (size_t i = 0; i < second.size(); ++i) result.steps.push_back(compare(first[i], second[i]));
  return result;
}

std::vector<Difference> Comparison::all() const {
  std::vector<Difference> found;
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    const auto add = [&](double ratio, Quantity quantity, const std::string& name = {}) {
      found.push_back({ratio, static_cast<int64_t>(i) + 1, quantity, name});
    };
    for (const TensorDifference& t : step.tensors) add(t.grad, Quantity::Gradient, t.name);
    for (const TensorDifference& t : step.tensors) add(t.value, Quantity::Weight, t.name);
    add(relative(step.loss[0], step.loss[1]), Quantity::Loss);
    add(relative(step.norm[0], step.norm[1]), Quantity::GradientNorm);
  }
  return found;
}

std::optional<Difference> Comparison::first_beyond(double tolerance) const {
  for (const Difference& difference : all())
    if (difference.ratio > tolerance) return difference;
  return std::nullopt;
}

Difference Comparison::largest() const {
  const std::vector<Difference> found = all();
  return *std::max_element(found.begin(), found.end(),
                           [](const auto& a, const auto& b) { return a.ratio < b.ratio; });
}

std::vector<TensorDifference> Comparison::worst(size_t count) const {
  std::vector<TensorDifference> sorted = steps.back().tensors;
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return std::max(a.grad, a.value) > std::max(b.grad, b.value);
  });
  sorted.resize(std::min(count, sorted.size()));
  return sorted;
}

std::string name_of(const Difference& difference) {
  switch (difference.quantity) {
    case Quantity::Loss: return "the loss";
    case Quantity::GradientNorm: return "the gradient norm";
    default: return difference.name;
  }
}

}  // namespace bev
