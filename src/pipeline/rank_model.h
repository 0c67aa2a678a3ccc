// What one rank holds of a model, on a device, ready to run: parameters, modules, borders. Training
// adds gradients and an optimizer to it, inference only memory for activations.
#pragma once

#include <deque>
#include <vector>

#include "comm/communicator.h"
#include "config/config.h"
#include "model/stage.h"
#include "parallel/process_groups.h"
#include "param/param_spec.h"

namespace bev {

// A world of one rank.
struct Alone {
  SingleCommunicator world;
  Groups groups{ParallelLayout{}, world};
};

class PlacedModel {
 public:
  // REQUIRES: a checked configuration whose layout is that of the groups; config, device and groups
  // must outlive this. The parameters hold zeros until they are initialised or loaded.
  PlacedModel(const Config& config, Device& device, Groups& groups);
  // The whole model. REQUIRES: the configuration asks for one rank.
  PlacedModel(const Config& config, Device& device);
  PlacedModel(const PlacedModel&) = delete;
  PlacedModel& operator=(const PlacedModel&) = delete;

 protected:
  std::unique_ptr<Alone> alone_;  // the world of a whole model; first, since all else refers to it

 private:
  PlacedModel(const Config& config, Device& device, std::unique_ptr<Alone> alone);

 public:
  const Config& config;
  Device& device;
  Groups& groups;
  const Blueprint blueprint;

  LocalAttention attention;
  ParamStore params;
  Leases leases;
  std::deque<Stage> stages;  // of this rank, in the order of the model
  ModelEnv env;
};

// Which layers a stage holds.

// The layers of stage `stage` of layout.stages(): the first and the last have what the
// configuration says, the rest is divided as evenly as possible.
StageRange stage_range(const Config& config, const ParallelLayout& layout, int stage);

// The parameters that a configuration's model has, without a model.

// Each once, in the order of the model. REQUIRES: the configuration asks for one rank.
std::vector<ParamSpec> model_parameters(const Config& config);

}  // namespace bev
