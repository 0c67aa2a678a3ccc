#include "ops/update.h"
#include "optim/optimizer.h"

namespace bev {

namespace {

class Sgd final : public UpdateMethod {
 public:
  Sgd(const OptimConfig& config, UpdateBuffers& buffers)
      : buffers_(buffers),
        momentum_(config.momentum),
        velocity_(buffers.make_state(StatePrecision::F32, "optimizer")) {}

  void step(Exec& ex, ConstTensor decision) override {
    for (const UpdateRange& r : buffers_.runs()) {
      ops::sgd(ex, {.param = buffers_.param(r),
                    .master = buffers_.master(r),
                    .buffer = UpdateBuffers::state(velocity_, r),
                    .grad = buffers_.grad(r),
                    .decision = decision,
                    .momentum = momentum_,
                    .decays = r.spec().decays()});
    }
  }

  std::vector<OptimizerState> states() const override { return {{"sgd.momentum", velocity_}}; }

 private:
  UpdateBuffers& buffers_;
  double momentum_;
  Tensor velocity_;
};

}  // namespace

std::unique_ptr<UpdateMethod> make_sgd(const OptimConfig& config, UpdateBuffers& buffers) {
  return std::make_unique<Sgd>(config, buffers);
}

}  // namespace bev
