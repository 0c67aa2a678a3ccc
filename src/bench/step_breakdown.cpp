#include "bench/step_breakdown.h"

#include <algorithm>
#include <array>

namespace bev {

namespace {

struct OpClass {
  std::string_view op, name;
};

// The classes appear in this order.
constexpr std::array kClasses{
    OpClass{"matmul", "products"},
    OpClass{"attention", "attention"},
    OpClass{"attention_backward", "attention"},
    OpClass{"rope", "rope"},
    OpClass{"norm", "norm"},
    OpClass{"residual_norm", "norm"},
    OpClass{"norm_backward", "norm"},
    OpClass{"residual_add", "residual and dropout"},
    OpClass{"dropout", "residual and dropout"},
    OpClass{"activate", "activation"},
    OpClass{"activate_backward", "activation"},
    OpClass{"softmax_stats", "loss"},
    OpClass{"cross_entropy", "loss"},
    OpClass{"embedding", "embedding"},
    OpClass{"embedding_backward", "embedding"},
    OpClass{"decide_update", "optimizer"},
    OpClass{"adamw", "optimizer"},
    OpClass{"sgd", "optimizer"},
    OpClass{"squared_norm", "reductions"},
    OpClass{"weighted_sum", "reductions"},
    OpClass{"hash_bits", "reductions"},
    OpClass{"fill", "fills and copies"},
    OpClass{"copy", "fills and copies"},
};
constexpr std::string_view kOther = "other";

void add(ClassTime& to, const OpSpan& span) {
  auto found = std::find_if(to.ops.begin(), to.ops.end(),
                            [&](const OpTime& time) { return time.op == span.op; });
  if (found == to.ops.end()) found = to.ops.insert(to.ops.end(), {.op = span.op});
  ++found->calls;
  found->seconds += span.end - span.begin;
}

}  // namespace

int64_t ClassTime::calls() const {
  int64_t sum = 0;
  for (const OpTime& time : ops) sum += time.calls;
  return sum;
}

double ClassTime::seconds() const {
  double sum = 0;
  for (const OpTime& time : ops) sum += time.seconds;
  return sum;
}

double StepBreakdown::gaps() const {
  double left = total;
  for (const ClassTime& c : classes) left -= c.seconds();
  return left;
}

std::string_view class_of(std::string_view op) {
  const auto found = std::find_if(kClasses.begin(), kClasses.end(),
                                  [&](const OpClass& entry) { return entry.op == op; });
  return found == kClasses.end() ? kOther : found->name;
}

StepBreakdown break_down(std::span<const OpSpan> spans) {
  StepBreakdown result;
  if (spans.empty()) return result;
  result.total = spans.back().end - spans.front().begin;
  for (const OpClass& entry : kClasses) {
    if (result.classes.empty() || result.classes.back().name != entry.name)
      result.classes.push_back({.name = entry.name, .ops = {}});
  }
  result.classes.push_back({.name = kOther, .ops = {}});
  for (const OpSpan& span : spans) {
    const std::string_view name = class_of(span.op);
    add(*std::find_if(result.classes.begin(), result.classes.end(),
                      [&](const ClassTime& c) { return c.name == name; }),
        span);
  }
  std::erase_if(result.classes, [](const ClassTime& c) { return c.ops.empty(); });
  for (ClassTime& c : result.classes) {
    std::stable_sort(c.ops.begin(), c.ops.end(),
                     [](const OpTime& a, const OpTime& b) { return a.seconds > b.seconds; });
  }
  return result;
}

}  // namespace bev
