// What a family of models is built from: the configuration and the numbers that follow from it.
#pragma once

#include <cmath>

#include "config/config.h"
#include "config/resolve.h"
#include "param/param_spec.h"

namespace bev {

struct ModelSpec {
  const Config& config;
  ModelShape shape;

  const ModelConfig& model() const { return config.model; }
  // How tensor ranks combine the gradients of what is computed between regions.
  Replica replica_between_regions() const {
    return config.parallel.sequence ? Replica::Sum : Replica::Same;
  }
  uint64_t seed() const { return static_cast<uint64_t>(config.train.seed); }
};

// Megatron's initial weights: one spread for what reads the residual stream ...
Init init_method(const ModelSpec& b);
// ... and a smaller one for what writes to it, std / sqrt(2 layers).
Init output_init_method(const ModelSpec& b);

inline Init init_method(const ModelSpec& b) { return {Init::Kind::Normal, b.model().init_std}; }

inline Init output_init_method(const ModelSpec& b) {
  const double layers = static_cast<double>(b.shape.layers);
  return {Init::Kind::Normal, b.model().init_std / std::sqrt(2.0 * layers)};
}

}  // namespace bev
