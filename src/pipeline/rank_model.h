// The part of a model on one rank, ready to run: parameters, modules, borders. Training adds
// gradients and an optimizer, inference memory for activations.
#pragma once

#include <deque>
#include <vector>

#include "comm/communicator.h"
#include "config/config.h"
#include "config/resolve.h"
#include "model/family/family.h"
#include "model/stage.h"
#include "parallel/process_groups.h"
#include "param/param_spec.h"
#include "pipeline/stage_split.h"

namespace bev {

// A world of one rank.
struct SingleRankWorld {
  SingleCommunicator world;
  ProcessGroups groups{ParallelLayout{}, world};
};

// Choices that no configuration makes.
struct ModelOptions {
  ModelSpec (*spec)(const Config& config) = model_spec;
  ShardRuleOf shard_rule = nullptr;  // of ParamStore
};

class RankModel {
 public:
  // REQUIRES: a checked configuration whose layout is that of the groups; config, device and groups
  // must outlive this. The parameters hold zeros until they are initialised or loaded.
  RankModel(const Config& config, Device& device, ProcessGroups& groups,
            const ModelOptions& options = {});
  // The whole model. REQUIRES: the configuration asks for one rank.
  RankModel(const Config& config, Device& device);
  RankModel(const RankModel&) = delete;
  RankModel& operator=(const RankModel&) = delete;

 protected:
  // The world of a model on one rank. First, since all else refers to it.
  std::unique_ptr<SingleRankWorld> single_rank_world_;

 private:
  RankModel(const Config& config, Device& device, std::unique_ptr<SingleRankWorld> world);

 public:
  const Config& config;
  Device& device;
  ProcessGroups& groups;
  const ModelShape shape;
  const ModelSpec spec;

  LocalAttention attention;
  ParamStore params;
  ParamGather param_gather;
  std::deque<Stage> stages;  // of this rank, in the order of the model
  ModelEnv env;
};

// The parameters of a configuration's model, in the order of the model. REQUIRES: the configuration
// asks for one rank.
std::vector<ParamSpec> model_parameters(const Config& config);

}  // namespace bev
