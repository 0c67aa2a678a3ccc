// A training under any layout, and what came out of it in logical coordinates: as if one rank had
// held everything.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "data/mock_dataset.h"
#include "train/step_runner.h"

namespace bev {

struct LogicalTensor {
  std::string name;
  std::vector<double> grad, value;  // the gradient summed over ranks, not clipped
  // Elements that mean nothing: a bias that a softmax cancels has rounding noise for a
  // gradient, which an optimizer scales up.
  FlatRange noise{0, 0};
};

struct StepOutcome {
  double loss = 0, norm = 0;           // of the gradient
  std::vector<LogicalTensor> tensors;  // after the update; in the order of the model
};

// What one rank does: `steps` steps as config.parallel says, in arenas of exactly the planned size.
// REQUIRES: a checked configuration whose layout has world.size() ranks; a device for it, of which
// nothing is allocated.
void train_rank(
    const Config& config, Device& device, Communicator& world,
    std::shared_ptr<const Dataset> samples, int64_t steps,
    FunctionRef<void(int64_t step, const StepResult& result, TrainingState& state)> after,
    const ModelOptions& options = {});

// The device of a rank of that configuration.
std::unique_ptr<Device> rank_device(const Config& config);

// All ranks of the layout, as threads, on UnevenDataset; an outcome per step.
std::vector<StepOutcome> train_layout(const Config& config, int64_t steps,
                                      const ModelOptions& options = {});

// The same on ranks that exist: all of them call it together, and all get the outcome.
std::vector<StepOutcome> train_layout(const Config& config, int64_t steps, Device& device,
                                      Communicator& world);

// Made-up samples of which some tokens do not count: more in some samples than in others, and none
// in a few. A mean over the wrong tokens, or over ranks instead of tokens, is then another number.
// Every third pair of segments is short, with padding in most of its sequence.
class UnevenDataset final : public Dataset {
 public:
  explicit UnevenDataset(int64_t vocab) : tokens_(vocab, 7) {}
  void read(int64_t index, HostBatch& batch, int64_t at) const override;
  std::string describe(int64_t index) const override { return tokens_.describe(index); }

 private:
  MockDataset tokens_;
};

}  // namespace bev
