#include "train/assembly.h"

namespace bev {

Assembly::Assembly(const Config& c, Device& d, Groups& g, const ArenaSizes& sizes)
    : PlacedModel(c, d, g),
      grads(params, c.optim.gradients),
      reducer(params, grads, groups),
      optimizer(make_optimizer(c.optim, params, grads, groups.data(),
                               static_cast<uint64_t>(c.train.seed))),
      executor(*this, resolve_batch(c).micros, sizes) {
  env.sink = reducer.sink();
}

Assembly::Assembly(const Config& c, Device& d, const ArenaSizes& sizes)
    : PlacedModel(c, d),
      grads(params, c.optim.gradients),
      reducer(params, grads, groups),
      optimizer(make_optimizer(c.optim, params, grads, groups.data(),
                               static_cast<uint64_t>(c.train.seed))),
      executor(*this, resolve_batch(c).micros, sizes) {}

void Assembly::initialize() {
  params.initialize(static_cast<uint64_t>(config.train.seed));
  Exec ex = executor.exec();
  optimizer->refresh_master(ex);
}

}  // namespace bev
