// A case has one value of each of several factors. Faults mostly need one value of one factor, or
// two together: a list of cases is judged by the pairs of values that occur in it.
#pragma once

#include <compare>
#include <cstddef>
#include <set>
#include <vector>

namespace bev::test {

// Of one case: which value of each factor, counted from 0.
using FactorValues = std::vector<size_t>;

struct ValuePair {
  size_t factor[2], value[2];
  auto operator<=>(const ValuePair&) const = default;
};

class PairCoverage {
 public:
  // Returns how many pairs were new.
  size_t add(const FactorValues& values);
  // How many would be.
  size_t gain(const FactorValues& values) const;
  // Those of `other` that do not occur here.
  std::vector<ValuePair> missing(const PairCoverage& other) const;

 private:
  std::set<ValuePair> pairs_;
};

}  // namespace bev::test
