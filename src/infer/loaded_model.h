// A trained model, loaded to be used: what one rank holds of its weights, no gradients.
#pragma once

#include <memory>

#include "infer/model_folder.h"
#include "pipeline/executor.h"
#include "pipeline/rank_model.h"

namespace bev {

// How a model is used.
struct InferenceSetup {
  DeviceConfig device{};
  ParallelConfig parallel{};
  int64_t sequences = 1, length = 1;  // of the largest batch. REQUIRES: fits the model's positions
};
// The configuration of the stored model in that use.
Config config_of_use(const ModelFolder& folder, const InferenceSetup& use);

// Usage error if some tensor rank would hold padding of the vocabulary only.
void require_ids_on_every_rank(const Config& config);

class LoadedModel {
 public:
  // All ranks of the world together, each with a device of its own; both must outlive this.
  LoadedModel(const ModelFolder& folder, const InferenceSetup& use, Device& device,
              Communicator& world);
  // The whole model on a device that it owns.
  LoadedModel(const ModelFolder& folder, const DeviceConfig& device, int64_t sequences,
              int64_t length);
  LoadedModel(const LoadedModel&) = delete;
  LoadedModel& operator=(const LoadedModel&) = delete;

  const Config& config() const { return config_; }
  RankModel& placed() { return *model_; }
  Device& device() { return device_; }
  Communicator& world() { return world_; }
  int64_t vocab() const { return model_->shape.vocab; }

  // For whole sequences; its memory is made with the first call. Losses leave out the padding of
  // the vocabulary. Usage error: see require_ids_on_every_rank.
  Executor& executor();

 private:
  // What a model of its own needs.
  struct Own {
    std::unique_ptr<Device> device;
    SingleCommunicator world{};
  };
  LoadedModel(const ModelFolder& folder, const InferenceSetup& use, std::unique_ptr<Own> own);

  std::unique_ptr<Own> own_;
  Config config_;
  Device& device_;
  Communicator& world_;
  ProcessGroups groups_;
  std::unique_ptr<RankModel> model_;
  std::unique_ptr<Executor> executor_;
};

// The same rank of the same model on a device without memory: what is done to it says how much
// memory it takes.
class DryRunModel {
 public:
  DryRunModel(const Config& config, int rank);

  Config config;
  std::unique_ptr<Device> device;

 private:
  std::unique_ptr<Communicator> world_;
  ProcessGroups groups_;

 public:
  RankModel model;
};

}  // namespace bev
