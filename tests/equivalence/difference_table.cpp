#include "equivalence/difference_table.h"

#include <algorithm>

#include "base/format.h"

namespace bev::test {

namespace {

constexpr Quantity kColumns[] = {Quantity::Loss, Quantity::Gradient, Quantity::Weight};

}  // namespace

void DifferenceTable::add(const std::string& layout, DeviceKind device,
                          const Comparison& comparison) {
  if (std::find(layouts_.begin(), layouts_.end(), layout) == layouts_.end())
    layouts_.push_back(layout);
  Worst& worst = worst_[device][layout];
  for (const Difference& difference : comparison.all()) {
    const auto [known, is_new] = worst.try_emplace(difference.quantity, difference);
    if (!is_new && difference.ratio > known->second.ratio) known->second = difference;
  }
}

std::string DifferenceTable::markdown() const {
  std::string head = "| layout |", line = "| --- |", body;
  for (const auto& [device, unused] : worst_) {
    head += format(" {}: loss | gradient | weight | most in |", name_of_choice(device));
    line += " --- | --- | --- | --- |";
  }
  for (const std::string& layout : layouts_) {
    body += format("| `{}` |", layout);
    for (const auto& [device, by_layout] : worst_) {
      const Worst& worst = by_layout.at(layout);
      for (const Quantity quantity : kColumns)
        body += format(" {:.1e} |", worst.at(quantity).ratio);
      const Difference &gradient = worst.at(Quantity::Gradient),
                       &weight = worst.at(Quantity::Weight);
      body += format(" {} |", gradient.ratio > weight.ratio ? gradient.name : weight.name);
    }
    body += '\n';
  }
  return format("{}\n{}\n{}", head, line, body);
}

}  // namespace bev::test
