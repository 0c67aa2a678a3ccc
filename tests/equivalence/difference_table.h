// What layouts differ by from one rank, as a table of Markdown: a row for each layout.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "verify/run_comparison.h"

namespace bev::test {

class DifferenceTable {
 public:
  // The largest differences of several comparisons of a layout are what its row shows.
  void add(const std::string& layout, DeviceKind device, const Comparison& comparison);
  std::string markdown() const;

 private:
  // The largest of each quantity.
  using Worst = std::map<Quantity, Difference>;
  std::vector<std::string> layouts_;  // in the order of addition
  std::map<DeviceKind, std::map<std::string, Worst>> worst_;
};

}  // namespace bev::test
