#include "equivalence/pair_coverage.h"

#include <algorithm>
#include <iterator>

namespace bev::test {

namespace {

std::vector<ValuePair> pairs_of(const FactorValues& values) {
  std::vector<ValuePair> pairs;
  for (size_t i = 0; i < values.size(); ++i) {
    for (size_t j = i + 1; j < values.size(); ++j)
      pairs.push_back({.factor = {i, j}, .value = {values[i], values[j]}});
  }
  return pairs;
}

}  // namespace

size_t PairCoverage::add(const FactorValues& values) {
  const size_t before = pairs_.size();
  for (const ValuePair& pair : pairs_of(values)) pairs_.insert(pair);
  return pairs_.size() - before;
}

size_t PairCoverage::gain(const FactorValues& values) const {
  const std::vector<ValuePair> pairs = pairs_of(values);
  return static_cast<size_t>(std::count_if(
      pairs.begin(), pairs.end(), [&](const ValuePair& pair) { return !pairs_.contains(pair); }));
}

std::vector<ValuePair> PairCoverage::missing(const PairCoverage& other) const {
  std::vector<ValuePair> result;
  std::set_difference(other.pairs_.begin(), other.pairs_.end(), pairs_.begin(), pairs_.end(),
                      std::back_inserter(result));
  return result;
}

}  // namespace bev::test
