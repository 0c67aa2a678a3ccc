// What a family of models is built from: the configuration and the numbers that follow from it.
#pragma once

#include "config/config.h"
#include "config/resolve.h"
#include "param/param_spec.h"

namespace bev {

// Names that checkpoints of other programs are mapped to.
inline constexpr const char* kTokenTable = "embedding.tokens.weight";
inline constexpr const char* kHeadWeight = "head.weight";  // absent if it is tied

struct ModelSpec {
  const Config& config;
  ModelShape shape;

  const ModelConfig& model() const { return config.model; }
  // How tensor ranks combine the gradients of what is computed between regions.
  Replica replica_between_regions() const {
    return config.parallel.sequence ? Replica::Sum : Replica::Same;
  }
  Init init() const { return Init::normal(model().init_std); }
  Init output_init() const { return Init::scaled_normal(model().init_std, shape.layers); }
  uint64_t seed() const { return static_cast<uint64_t>(config.train.seed); }
};

}  // namespace bev
