// Which samples, which rank and which tensor are behind a step that went wrong.
#pragma once

#include <memory>
#include <string>

#include "train/evaluation.h"
#include "train/guard_event.h"

namespace bev {

class Diagnosis {
 public:
  // All must outlive this.
  Diagnosis(Assembly& assembly, Stepper& stepper, std::shared_ptr<const Samples> samples);

  // Computes the step again, sample by sample and as a whole, with the weights as they are now. All
  // ranks together; the first has the whole text: lines behind the first one, each after a line's
  // end. REQUIRES: no step is in flight. Gradients are overwritten.
  std::string explain(const IssuedStep& step, const SampleRanges& skipped,
                      const StepResult& result);

 private:
  std::string worst_samples(const IssuedStep& step, const SampleRanges& skipped,
                            const StepResult& result);
  std::string worst_tensor(const IssuedStep& step, const SampleRanges& skipped, bool was_finite);
  // The rank that computed a sample of the step: the first of those that share it.
  int rank_of(int64_t number) const;

  Assembly& assembly_;
  Stepper& stepper_;
  std::shared_ptr<const Samples> samples_;
};

}  // namespace bev
