// The part of a model on one rank, ready to run: parameters, modules, borders. Training adds
// gradients and an optimizer, inference memory for activations.
#pragma once

#include <deque>
#include <vector>

#include "comm/communicator.h"
#include "config/config.h"
#include "config/resolve.h"
#include "model/stage.h"
#include "parallel/process_groups.h"
#include "param/param_spec.h"

namespace bev {

// A world of one rank.
struct SingleRankWorld {
  SingleCommunicator world;
  ProcessGroups groups{ParallelLayout{}, world};
};

class RankModel {
 public:
  // REQUIRES: a checked configuration whose layout is that of the groups; config, device and groups
  // must outlive this. The parameters hold zeros until they are initialised or loaded.
  RankModel(const Config& config, Device& device, ProcessGroups& groups,
            ShardRuleOf shard_rule = nullptr);
  // The whole model. REQUIRES: the configuration asks for one rank.
  RankModel(const Config& config, Device& device);
  RankModel(const RankModel&) = delete;
  RankModel& operator=(const RankModel&) = delete;

 protected:
  std::unique_ptr<SingleRankWorld> alone_;  // the world of a whole model; first, since all else
                                            // refers to it

 private:
  RankModel(const Config& config, Device& device, std::unique_ptr<SingleRankWorld> alone);

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

// The blocks of a stage.
struct StageLayers {
  int64_t first = 0, count = 0;
  bool has_embedding = true, has_head = true;
};

// The layers of stage `stage` of layout.stages(): the first and the last have as many as the
// configuration says, the others about the same number each.
StageLayers stage_layers(const Config& config, const ParallelLayout& layout, int stage);

// The parts of a stage: its blocks, with the parts before the first and after the last block of the
// model on the first and last stage.
PartRange parts_of(const ModelSpec& spec, const StageLayers& layers);

// The parameters of a configuration's model, in the order of the model. REQUIRES: the configuration
// asks for one rank.
std::vector<ParamSpec> model_parameters(const Config& config);

}  // namespace bev
