// A whole model on a device, ready to run: parameters, modules, borders. Training adds gradients
// and an optimizer to it, inference only memory for activations.
#pragma once

#include "comm/single.h"
#include "config/config.h"
#include "model/stage.h"

namespace bev {

class PlacedModel {
 public:
  // REQUIRES: a checked configuration; config and device must outlive this. The parameters hold
  // zeros until they are initialised or loaded.
  PlacedModel(const Config& config, Device& device);
  PlacedModel(const PlacedModel&) = delete;
  PlacedModel& operator=(const PlacedModel&) = delete;

  const Config& config;
  Device& device;
  const Blueprint blueprint;

  SingleCommunicator world;
  LocalAttention attention;
  ParamStore params;
  Stage stage;
  ModelEnv env;
};

}  // namespace bev
