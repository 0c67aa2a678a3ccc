#include "verify/run_comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/format.h"
#include "base/json.h"
#include "base/text_table.h"

namespace bev {

namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// So that what is not a number is found by a comparison.
double or_infinite(double ratio) { return std::isnan(ratio) ? kInfinite : ratio; }

double relative(double x, double y) { return x == y ? 0 : or_infinite(std::abs((x - y) / y)); }

// `largest`: the largest square of a norm of y so far, which this adds to.
double relative(const std::vector<double>& x, const std::vector<double>& y, const FlatRange& noise,
                double& largest) {
  double square = 0, norm = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    if (at >= noise.begin && at < noise.begin + noise.count) continue;
    square += (x[i] - y[i]) * (x[i] - y[i]);
    norm += y[i] * y[i];
  }
  largest = std::max(largest, norm);
  return square == 0 ? 0 : or_infinite(std::sqrt(square / largest));
}

// `largest`: of the values of each tensor.
Comparison::Step compare(const StepOutcome& first, const StepOutcome& second,
                         std::vector<double>& largest) {
  Comparison::Step step{{first.loss, second.loss}, {first.norm, second.norm}, {}};
  BEV_CHECK(first.tensors.size() == second.tensors.size(), Internal, "{} tensors against {}",
            first.tensors.size(), second.tensors.size());
  largest.resize(second.tensors.size());
  for (size_t i = 0; i < second.tensors.size(); ++i) {
    const LogicalTensor &x = first.tensors[i], &y = second.tensors[i];
    BEV_CHECK(x.name == y.name && x.value.size() == y.value.size(), Internal,
              "{} of {} elements against {} of {}", x.name, x.value.size(), y.name, y.value.size());
    double gradient = 0;
    step.tensors.push_back({y.name, relative(x.grad, y.grad, y.noise, gradient),
                            relative(x.value, y.value, y.noise, largest[i])});
  }
  return step;
}

}  // namespace

Comparison compare_runs(std::span<const StepOutcome> first, std::span<const StepOutcome> second) {
  BEV_CHECK(first.size() == second.size(), Internal, "{} steps against {}", first.size(),
            second.size());
  Comparison result;
  std::vector<double> largest;
  for (size_t i = 0; i < second.size(); ++i)
    result.steps.push_back(compare(first[i], second[i], largest));
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

namespace {

constexpr size_t kWorst = 8, kNumberWidth = 18;

std::string_view quantity_text(Quantity quantity) {
  switch (quantity) {
    case Quantity::Gradient: return "gradient";
    case Quantity::Weight: return "value";
    case Quantity::Loss: return "loss";
    case Quantity::GradientNorm: return "gradient norm";
  }
  return "";
}

Json difference_json(const Difference& d) {
  return {{"name", d.name},
          {"quantity", quantity_text(d.quantity)},
          {"step", d.step},
          {"difference", d.ratio}};
}

}  // namespace

std::string verify_table(const VerifyReport& r) {
  const size_t width = std::max({kNumberWidth, r.layouts[0].size(), r.layouts[1].size()});
  TextTable row("{:>4}  {:>*.15f}  {:>*.15f}  {:>*.15f}  {:>*.15f}", width);
  row.text = format("\n{:>4}  {:<{}}  gradient norm\n", "", "loss", 2 * width + 2);
  row("step", r.layouts[0], r.layouts[1], r.layouts[0], r.layouts[1]);
  for (size_t i = 0; i < r.comparison.steps.size(); ++i) {
    const Comparison::Step& s = r.comparison.steps[i];
    row(i + 1, s.loss[0], s.loss[1], s.norm[0], s.norm[1]);
  }
  TextTable worst("{:<53} {:>10.1e} {:>10.1e}");
  worst("relative differences after the last step, worst first", "gradient", "value");
  for (const TensorDifference& t : r.comparison.worst(kWorst))
    worst("  " + t.name, t.grad, t.value);
  return row.text + "\n" + worst.text;
}

std::string verify_json(const VerifyReport& r) {
  Json steps = Json::array();
  for (const Comparison::Step& s : r.comparison.steps) {
    Json tensors = Json::array();
    for (const TensorDifference& t : s.tensors)
      tensors.push_back({{"name", t.name}, {"gradient", t.grad}, {"value", t.value}});
    steps.push_back({{"loss", {s.loss[0], s.loss[1]}},
                     {"grad_norm", {s.norm[0], s.norm[1]}},
                     {"tensors", std::move(tensors)}});
  }
  const auto first = r.comparison.first_beyond(r.tolerance);
  const Json json{{"layouts", {r.layouts[0], r.layouts[1]}},
                  {"device", name_of_choice(r.device)},
                  {"tolerance", r.tolerance},
                  {"agree", !first.has_value()},
                  {"largest", difference_json(r.comparison.largest())},
                  {"first", first ? difference_json(*first) : Json()},
                  {"steps", std::move(steps)}};
  return json.dump(2);
}

std::string agreement_text(const VerifyReport& r) {
  const Difference largest = r.comparison.largest();
  return format("the layouts agree: largest difference {:.1e} ({}) within {:g}", largest.ratio,
                name_of(largest), r.tolerance);
}

std::string difference_text(const Difference& d, double tolerance) {
  const bool is_tensor = !d.name.empty();
  return format("they differ: first in {} at step {}: {} differs by {:.1e}, allowed are {:g}",
                name_of(d), d.step, is_tensor ? format("its {}", quantity_text(d.quantity)) : "it",
                d.ratio, tolerance);
}

}  // namespace bev
