// Everything one rank needs to train a configuration, put together on a device: the same assembly
// on the null device is the plan.
#pragma once

#include <memory>

#include "comm/single.h"
#include "config/config.h"
#include "optim/optimizer.h"
#include "pipeline/executor.h"

namespace bev {

class Assembly {
 public:
  // REQUIRES: a checked configuration; config and device must outlive this. The parameters hold
  // zeros until initialize() or a checkpoint fills them.
  Assembly(const Config& config, Device& device, const ArenaSizes& sizes);
  Assembly(const Assembly&) = delete;
  Assembly& operator=(const Assembly&) = delete;

  // Fresh weights from the seed.
  void initialize();

  const Config& config;
  Device& device;
  const Blueprint blueprint;

  SingleCommunicator world;
  LocalAttention attention;
  ParamStore params;
  Stage stage;

 private:
  struct Allocated {
    explicit Allocated(ParamStore& params) { params.allocate(); }
  };
  Allocated allocated_;  // between the declarations above and the buffers below

 public:
  GradBuffer grads;
  std::unique_ptr<Optimizer> optimizer;
  ModelEnv env;
  Executor executor;
};

}  // namespace bev
