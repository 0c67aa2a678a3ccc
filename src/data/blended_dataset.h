// Several sources of samples as one, by a rule that says whose sample stands where.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "data/batch.h"

namespace bev {

// A blend as arithmetic: which dataset, and which of its samples, stands at any place, at once.
//
// Weights become whole numbers that add up to a period. Within the period a table says whose turn
// it is, made by Tijdeman's rule ("The chairman assignment problem", 1980); period follows period.
// After any number n of places, dataset k of m has had n * weight_k / period samples, with an error
// of at most 1 - 1/(2m - 2), always less than one sample.

class BlendSchedule {
 public:
  // The period has at most this many places.
  static constexpr int64_t kLongestPeriod = int64_t{1} << 20;

  struct Place {
    size_t dataset;
    int64_t sample;  // of that dataset, counted from the start of the training
  };

  // REQUIRES: at least one weight, all above 0, fewer than the period has places.
  explicit BlendSchedule(std::span<const double> weights);

  // REQUIRES: index >= 0.
  Place at(int64_t index) const;

  // The place of a sample of a dataset: the other way round.
  int64_t place_of(size_t dataset, int64_t sample) const;

  // Places of a dataset in one period. Decimal weights and numbers of samples keep their exact
  // ratio where the period can hold it; others are rounded to parts of the longest period.
  const std::vector<int64_t>& weights() const { return weights_; }
  int64_t period() const { return static_cast<int64_t>(table_.size()); }

 private:
  struct Slot {
    uint32_t dataset, sample;  // of the period
  };

  std::vector<int64_t> weights_;
  std::vector<Slot> table_;
  std::vector<std::vector<uint32_t>> places_;  // of each dataset in the period
};

// The weights as whole numbers with a sum of at most `limit`, none of them 0, without a common
// divisor.
std::vector<int64_t> whole_weights(std::span<const double> weights, int64_t limit);

class BlendedDataset final : public Dataset {
 public:
  // The rule is called by several threads and must not allocate.
  using Rule = std::function<BlendSchedule::Place(int64_t index)>;

  BlendedDataset(std::vector<std::shared_ptr<const Dataset>> parts, Rule rule)
      : parts_(std::move(parts)), rule_(std::move(rule)) {}

  void read(int64_t index, HostBatch& batch, int64_t at) const override;
  std::string describe(int64_t index) const override;
  SampleSource source(int64_t index) const override;

 private:
  std::vector<std::shared_ptr<const Dataset>> parts_;
  Rule rule_;
};

}  // namespace bev
