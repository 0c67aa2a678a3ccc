// In what the cases of the layout tests differ: how the work is divided, the model, and the options
// that meet that division.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "equivalence/pair_coverage.h"

namespace bev::test {

struct Factor {
  std::string_view name;
  std::vector<std::string_view> values;
  void (*set)(Config& config, size_t value);
  size_t (*of)(const Config& config);
};
const std::vector<Factor>& layout_factors();

FactorValues values_in(const Config& config);

// The pairs in configurations of that model family that check_config() accepts, of at most
// `most_ranks` ranks.
PairCoverage legal_pairs(ModelFamily family, int64_t most_ranks);

// "tensor 2 with schedule gpipe"
std::string text_of(const ValuePair& pair);

}  // namespace bev::test
