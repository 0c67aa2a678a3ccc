// The diagnosis of bad steps, and the comparison of replicas. GuardPolicy decides when.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/sample_ranges.h"
#include "data/data_loader.h"
#include "device/memory.h"
#include "train/evaluation.h"
#include "train/step_runner.h"
#include "train/training_state.h"

namespace bev {

// A step that was issued: which samples it takes.
struct SubmittedStep {
  int64_t iteration = 0;
  DataLoader::Position begin{}, end{};

  int64_t samples() const { return end.consumed - begin.consumed; }
};

// What is wrong with a step: "the loss of iteration 7 is not finite", "the loss of iteration 7 is a
// spike: 9.31, where up to 4.2 is usual".
std::string describe_findings(int64_t iteration, const StepResult& result);

// Ranks that should hold the same numbers: whether they do.

// Compares hashes of weights, and of the optimizer's state where every data rank has all of it.
// What the layout divides has no second copy and cannot be compared.
class ReplicaCheck {
 public:
  // The assembly must outlive this.
  explicit ReplicaCheck(TrainingState& assembly);

  // Empty: all copies are the same. Else which tensor differs on which rank, the same text on every
  // rank. All ranks together. REQUIRES: no step is in flight.
  std::string find_difference();

 private:
  // Tensors that all ranks of a communicator hold alike, by their place among hashes_.
  struct Shared {
    Communicator* ranks;
    std::vector<size_t> tensors;
  };
  struct Hashed {
    std::string name;
    ConstTensor tensor;
  };
  std::vector<int64_t> hashes();
  std::string compare(const Shared& shared, const std::vector<int64_t>& hashes);
  std::string name_ranks(Communicator& ranks, const Hashed& hashed, int64_t hash);

  TrainingState& assembly_;
  std::vector<Hashed> tensors_;
  std::vector<Shared> shared_;
  Buffer memory_;
};

// Which samples, which rank and which tensor are behind a step that went wrong.

class StepDiagnosis {
 public:
  // All must outlive this.
  StepDiagnosis(TrainingState& assembly, StepRunner& stepper,
                std::shared_ptr<const Dataset> samples);

  // Computes the step again, sample by sample and as a whole, with the weights as they are now. All
  // ranks together; the first has the whole text: lines behind the first one, each after a line's
  // end. REQUIRES: no step is in flight. Gradients are overwritten.
  std::string explain(const SubmittedStep& step, const SampleRanges& skipped,
                      const StepResult& result);

 private:
  std::string worst_samples(const SubmittedStep& step, const SampleRanges& skipped,
                            const StepResult& result);
  std::string worst_tensor(const SubmittedStep& step, const SampleRanges& skipped, bool was_finite);
  // The rank that computed a sample of the step: the first of those that share it.
  int rank_of(int64_t number) const;

  TrainingState& assembly_;
  StepRunner& stepper_;
  std::shared_ptr<const Dataset> samples_;
};

}  // namespace bev
