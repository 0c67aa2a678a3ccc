#include "train/assembly.h"

namespace bev {

Assembly::Assembly(const Config& c, Device& d, const ArenaSizes& sizes)
    : config(c),
      device(d),
      blueprint{c, resolve_model(c)},
      params(d, ParallelLayout{}, 0, resolve_dtype(c)),
      stage(params, blueprint, {.first = 0, .count = blueprint.shape.layers}),
      allocated_(params),
      grads(params),
      optimizer(make_optimizer(c.optim, params, grads)),
      env{.tensor = TensorRegion(world, c.parallel.sequence), .attention = attention},
      executor(d, stage, env, resolve_batch(c).micros, sizes) {}

void Assembly::initialize() {
  params.initialize(static_cast<uint64_t>(config.train.seed));
  Exec ex = executor.exec();
  optimizer->refresh_master(ex);
}

}  // namespace bev
