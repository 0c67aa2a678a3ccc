// Several sources of samples as one, by a rule that says whose sample stands where.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "data/batch.h"
#include "data/blend_schedule.h"

namespace bev {

class BlendedSamples final : public Samples {
 public:
  // The rule is called by several threads and must not allocate.
  using Rule = std::function<BlendSchedule::Place(int64_t index)>;

  BlendedSamples(std::vector<std::shared_ptr<const Samples>> parts, Rule rule)
      : parts_(std::move(parts)), rule_(std::move(rule)) {}

  void read(int64_t index, HostBatch& batch, int64_t at) const override;
  std::string describe(int64_t index) const override;
  SampleSource source(int64_t index) const override;

 private:
  std::vector<std::shared_ptr<const Samples>> parts_;
  Rule rule_;
};

}  // namespace bev
