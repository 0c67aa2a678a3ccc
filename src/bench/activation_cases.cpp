#include "base/format.h"
#include "bench/op_cases.h"
#include "ops/activation.h"

namespace bev {

namespace {

std::string activation_shape(const CaseOperands& o) { return format("{} x {}", o.tokens, o.inner); }

}  // namespace

// Plain activations are part of products, except where they are recomputed.
std::vector<OpCase> activate_cases(const CaseOperands& o) {
  const ops::Activate a{.activation = o.config.model.activation,
                        .x = o.value({o.tokens, o.inner}),
                        .y = o.value({o.tokens, o.model.ffn})};
  return {{activation_shape(o), [=](Exec& ex) { ops::activate(ex, a); }}};
}

std::vector<OpCase> activate_backward_cases(const CaseOperands& o) {
  const ops::ActivateBackward a{.activation = o.config.model.activation,
                                .dy = o.value({o.tokens, o.model.ffn}),
                                .x = o.value({o.tokens, o.inner}),
                                .dx = o.value({o.tokens, o.inner})};
  return {{activation_shape(o), [=](Exec& ex) { ops::activate_backward(ex, a); }}};
}

}  // namespace bev
