#include "verify/verify_report.h"

#include <algorithm>

#include "base/format.h"
#include "base/json.h"

namespace bev {

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
  const auto row = [&](const std::string& step, const auto&... cells) {
    return format("{:>4}", step) + (format("  {:>{}}", cells, width) + ...) + "\n";
  };
  const auto digits = [](double value) { return format("{:.15f}", value); };
  std::string text = format("\n{:>4}  {:<{}}  gradient norm\n", "", "loss", 2 * width + 2);
  text += row("step", r.layouts[0], r.layouts[1], r.layouts[0], r.layouts[1]);
  for (size_t i = 0; i < r.comparison.steps.size(); ++i) {
    const Comparison::Step& s = r.comparison.steps[i];
    text += row(format("{}", i + 1), digits(s.loss[0]), digits(s.loss[1]), digits(s.norm[0]),
                digits(s.norm[1]));
  }
  text += format("\n{:<53} {:>10} {:>10}\n",
                 "relative differences after the last step, worst first", "gradient", "value");
  for (const TensorDifference& t : r.comparison.worst(kWorst))
    text += format("  {:<51} {:>10.1e} {:>10.1e}\n", t.name, t.grad, t.value);
  return text;
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
