#include "base/format.h"
#include "bench/op_cases.h"

namespace bev {

// The model adds in place; here the sum goes elsewhere, so that it does not grow.
std::vector<OpCase> residual_add_cases(const CaseOperands& o) {
  const Shape shape{o.tokens, o.model.width};
  const ops::ResidualAdd plain{
      .residual = o.value(shape), .delta = o.value(shape), .out = o.value(shape)};
  const std::string name = format("{} x {}", o.tokens, o.model.width);
  std::vector<OpCase> cases{{name, [=](Exec& ex) { ops::residual_add(ex, plain); }}};
  const double probability = o.config.model.hidden_dropout;
  if (probability == 0) return cases;
  ops::ResidualAdd dropping = plain;
  dropping.dropout = o.dropout(probability);
  cases.push_back({format("{} dropout {}", name, probability),
                   [=](Exec& ex) { ops::residual_add(ex, dropping); }});
  return cases;
}

std::vector<OpCase> dropout_cases(const CaseOperands& o) {
  const double probability = o.config.model.hidden_dropout;
  if (probability == 0) return {};
  const Shape shape{o.tokens, o.model.width};
  const ops::DropoutApply d{
      .x = o.value(shape), .dropout = o.dropout(probability), .y = o.value(shape)};
  return {{format("{} x {} dropout {}", o.tokens, o.model.width, probability),
           [=](Exec& ex) { ops::dropout(ex, d); }}};
}

}  // namespace bev
