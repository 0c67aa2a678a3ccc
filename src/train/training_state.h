// Everything one rank needs to train a configuration, put together on a device: the same assembly
// on the null device is the plan.
#pragma once

#include <memory>

#include "optim/grad_reducer.h"
#include "optim/optimizer.h"
#include "pipeline/executor.h"
#include "pipeline/rank_model.h"

namespace bev {

class Assembly : public PlacedModel {
 public:
  Assembly(const Config& config, Device& device, Groups& groups, const ArenaSizes& sizes);
  // On one rank.
  Assembly(const Config& config, Device& device, const ArenaSizes& sizes);

  // Fresh weights from the seed.
  void initialize();
  // The same after some training: the optimizer forgets it, too.
  void start_anew();

 private:
  Assembly(const Config& config, Device& device, std::unique_ptr<Alone> alone,
           const ArenaSizes& sizes);

 public:
  GradBuffer grads;
  GradReducer reducer;
  std::unique_ptr<Optimizer> optimizer;
  Executor executor;
};

}  // namespace bev
