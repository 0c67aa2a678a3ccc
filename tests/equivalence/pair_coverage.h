// A case has one value of each of several factors. Faults mostly need one value of one factor, or
// two together: a list of cases is judged by the pairs of values that occur in it.
#pragma once

#include <bitset>
#include <cstddef>
#include <vector>

namespace bev::test {

// Of one case: which value of each factor, counted from 0.
using FactorValues = std::vector<size_t>;

struct ValuePair {
  size_t factor[2], value[2];
};

// At most 16 factors of at most 16 values.
class PairCoverage {
 public:
  void add(const FactorValues& values);
  // Pairs of these values that are missing here.
  size_t gain(const FactorValues& values) const;
  // Those of `other` that do not occur here.
  std::vector<ValuePair> missing(const PairCoverage& other) const;

 private:
  static constexpr size_t kMost = 16;
  static size_t place_of(const ValuePair& pair);
  template <class F>
  static void each_pair(const FactorValues& values, F f);

  std::bitset<kMost * kMost * kMost * kMost> pairs_;
};

}  // namespace bev::test
