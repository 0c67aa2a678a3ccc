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

// A step that was issued, and its samples.
struct SubmittedStep {
  int64_t iteration = 0;
  DataLoader::Position begin{}, end{};

  int64_t samples() const { return end.consumed - begin.consumed; }
};

// "the loss of iteration 7 is not finite", "the loss of iteration 7 is a spike: 9.31, where up to
// 4.2 is usual".
std::string describe_findings(int64_t iteration, const StepResult& result);

// Compares hashes of the weights between ranks, and of the optimizer state unless ZeRO shards it.
// Sharded tensors have no replica to compare with.
class ReplicaCheck {
 public:
  // All must outlive this. All ranks of a world construct theirs together.
  ReplicaCheck(const ParamStore& params, const Optimizer& optimizer, ProcessGroups& groups);

  // Names the tensor that differs, and the ranks that hold another copy; every rank gets the same
  // text. Empty: all replicas are equal. All ranks together. REQUIRES: no step is in flight.
  std::string find_difference(Exec& ex);

 private:
  // Tensors that all ranks of a communicator replicate.
  struct Shared {
    Communicator* ranks;
    std::vector<size_t> tensors;  // indices of tensors_
  };
  struct Hashed {
    std::string name;
    ConstTensor tensor;
  };
  std::vector<int64_t> hashes(Exec& ex);
  std::string compare(const Shared& shared, const std::vector<int64_t>& hashes);
  std::string name_ranks(Communicator& ranks, const Hashed& hashed, int64_t hash);

  ProcessGroups& groups_;
  std::vector<Hashed> tensors_;
  std::vector<Shared> shared_;
  Buffer memory_;
};

// Finds the samples, the rank and the tensor that caused a bad step.
class StepDiagnosis {
 public:
  // All arguments must outlive this.
  StepDiagnosis(TrainingState& state, StepRunner& stepper, std::shared_ptr<const Dataset> samples);

  // Recomputes the step with the present weights, sample by sample and as a whole; overwrites the
  // gradients. Returns lines to append to the description of the step, each with a line break in
  // front; complete on rank 0 only. All ranks together. REQUIRES: no step is in flight.
  std::string explain(const SubmittedStep& step, const SampleRanges& skipped,
                      const StepResult& result);

 private:
  std::string worst_samples(const SubmittedStep& step, const SampleRanges& skipped,
                            const StepResult& result);
  std::string worst_tensor(const SubmittedStep& step, const SampleRanges& skipped, bool was_finite);
  // The rank that computed a sample of the step: the first rank of its data-parallel coordinate.
  int rank_of(int64_t number) const;

  TrainingState& state_;
  StepRunner& stepper_;
  std::shared_ptr<const Dataset> samples_;
};

}  // namespace bev
