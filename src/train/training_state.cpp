#include "train/training_state.h"

#include "base/integer.h"
#include "ops/elementwise.h"

namespace bev {

Assembly::Assembly(const Config& c, Device& d, Groups& g, const ArenaSizes& sizes)
    : PlacedModel(c, d, g),
      grads(params, c.optim.gradients),
      reducer(params, grads, groups),
      optimizer(make_optimizer(c.optim, params, grads, static_cast<uint64_t>(c.train.seed))),
      executor(*this, resolve_batch(c).micros, sizes) {
  env.sink = reducer.sink();
  for (const int64_t batch : resolve_batch_schedule(c).sizes())
    executor.prepare(div_exact(batch, c.train.micro_batch * data_ranks(c)));
}

Assembly::Assembly(const Config& c, Device& d, std::unique_ptr<Alone> alone,
                   const ArenaSizes& sizes)
    : Assembly(c, d, alone->groups, sizes) {
  alone_ = std::move(alone);
}

Assembly::Assembly(const Config& c, Device& d, const ArenaSizes& sizes)
    : Assembly(c, d, std::make_unique<Alone>(), sizes) {}

void Assembly::initialize() {
  params.initialize(static_cast<uint64_t>(config.train.seed));
  Exec ex = executor.exec();
  optimizer->refresh_master(ex);
}

void Assembly::start_anew() {
  Exec ex = executor.exec();
  for (const Optimizer::State& state : optimizer->states())
    ops::fill(ex, {.out = state.flat, .value = 0});
  initialize();
}

}  // namespace bev
