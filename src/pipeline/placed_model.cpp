#include "pipeline/placed_model.h"

namespace bev {

PlacedModel::PlacedModel(const Config& c, Device& d)
    : config(c),
      device(d),
      blueprint{c, resolve_model(c)},
      params(d, ParallelLayout{}, 0, resolve_dtype(c)),
      stage(params, blueprint, {.first = 0, .count = blueprint.shape.layers}),
      env{.tensor = TensorRegion(world, c.parallel.sequence), .attention = attention} {
  params.allocate();
}

}  // namespace bev
