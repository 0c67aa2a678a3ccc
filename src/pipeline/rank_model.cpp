#include "pipeline/rank_model.h"

#include "pipeline/stage_split.h"

namespace bev {

PlacedModel::PlacedModel(const Config& c, Device& d, Groups& g)
    : config(c),
      device(d),
      groups(g),
      blueprint{c, resolve_model(c)},
      params(d, g.layout(), g.rank(), resolve_dtype(c)),
      leases(params, g.data()),
      env{.tensor = TensorRegion(g.tensor(), g.layout().sequence), .attention = attention} {
  const ParallelLayout& layout = g.layout();
  for (int chunk = 0; chunk < layout.chunks; ++chunk) {
    const int stage = chunk * layout.pipeline + g.coordinate(Axis::Pipeline);
    stages.emplace_back(params, blueprint, stage_range(c, layout, stage));
  }
  params.allocate();
  if (leases.are_lent()) env.leases = &leases;
}

PlacedModel::PlacedModel(const Config& c, Device& d, std::unique_ptr<Alone> alone)
    : PlacedModel(c, d, alone->groups) {
  alone_ = std::move(alone);
}

PlacedModel::PlacedModel(const Config& c, Device& d)
    : PlacedModel(c, d, std::make_unique<Alone>()) {}

}  // namespace bev
