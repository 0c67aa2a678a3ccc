#include "equivalence/pair_coverage.h"

#include <stdexcept>

namespace bev::test {

size_t PairCoverage::place_of(const ValuePair& pair) {
  size_t place = 0;
  for (const size_t digit : {pair.factor[0], pair.factor[1], pair.value[0], pair.value[1]}) {
    if (digit >= kMost) throw std::logic_error("PairCoverage: too many factors or values");
    place = place * kMost + digit;
  }
  return place;
}

template <class F>
void PairCoverage::each_pair(const FactorValues& values, F f) {
  for (size_t i = 0; i < values.size(); ++i) {
    for (size_t j = i + 1; j < values.size(); ++j)
      f(place_of({.factor = {i, j}, .value = {values[i], values[j]}}));
  }
}

void PairCoverage::add(const FactorValues& values) {
  each_pair(values, [&](size_t place) { pairs_.set(place); });
}

size_t PairCoverage::gain(const FactorValues& values) const {
  size_t gain = 0;
  each_pair(values, [&](size_t place) { gain += pairs_.test(place) ? 0 : 1; });
  return gain;
}

std::vector<ValuePair> PairCoverage::missing(const PairCoverage& other) const {
  std::vector<ValuePair> result;
  for (size_t place = 0; place < pairs_.size(); ++place) {
    if (pairs_.test(place) || !other.pairs_.test(place)) continue;
    size_t digits[4], rest = place;
    for (size_t i = 4; i-- > 0; rest /= kMost) digits[i] = rest % kMost;
    result.push_back({.factor = {digits[0], digits[1]}, .value = {digits[2], digits[3]}});
  }
  return result;
}

}  // namespace bev::test
