// One golden model on one device: the checkpoint loaded, ready to infer and to train on the golden
// tokens.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "convert/huggingface/huggingface.h"
#include "golden_runner/places.h"
#include "plan/dry_run.h"
#include "train/step_runner.h"

namespace bev::golden {

using Values = std::vector<double>;

struct Tokens {
  int64_t steps, micros, batch, length;  // length: of a sequence without its last target
  std::vector<int32_t> ids;              // [steps, micros, batch, length + 1]

  explicit Tokens(const std::filesystem::path& file);

  // The micro-batches of one step.
  std::vector<HostBatch> step(int64_t index) const;
};

// The optimizer of adamw.json or sgd.json, by their `hyper`.
OptimConfig optim_of(const std::string& kind, const Json& hyper);

// The factor that the optimizer applies to gradients of this norm, which it clips at `clip`.
double clip_coefficient(Exec& ex, double clip, double grad_norm);

// Of parameters after steps of Adam in f32. Adam divides tiny gradients by their own size, so that
// single entries magnify rounding; the whole tensor does not.
inline constexpr double kAdamRmsBound = 1e-4;

class ModelRun {
 public:
  // `optim`: the training that follows; its lengths are in steps.
  ModelRun(const std::filesystem::path& dir, const Tokens& tokens, const Place& place,
           const OptimConfig& optim);

  // Logits and hidden states of one micro-batch under the names of forward.safetensors.
  std::vector<NamedValues> forward(const HostBatch& batch);

  // Gradients of a step's loss, before clipping, without the loss scale.
  std::vector<NamedValues> gradients(const std::vector<HostBatch>& batches);

  StepResult step(const std::vector<HostBatch>& batches) { return stepper_.step(batches); }
  double mean_loss(const std::vector<HostBatch>& batches);
  double clip_coefficient(double grad_norm);

  std::vector<NamedValues> weights();
  std::vector<std::string> names(bool decayed);

  const ModelShape& shape() const { return plan_.model; }
  HuggingFaceFamily family() const { return model_.family; }

 private:
  std::vector<NamedValues> named(Tensor Param::* tensor);

  HuggingFaceModel model_;
  Config config_;
  Plan plan_;
  std::unique_ptr<Device> device_;
  TrainingState assembly_;
  StepRunner stepper_;
};

}  // namespace bev::golden
