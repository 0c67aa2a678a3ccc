#include "base/philox.h"
#include "ops/update.h"
#include "optim/optimizer.h"

namespace bev {

namespace {

class AdamW final : public UpdateMethod {
 public:
  AdamW(const OptimConfig& config, UpdateBuffers& buffers, uint64_t seed)
      : config_(config),
        buffers_(buffers),
        rounding_key_(mix_key(seed, "moments")),
        first_(buffers.make_state(config.first_moment, "optimizer")),
        second_(buffers.make_state(config.second_moment, "optimizer")) {}

  void step(Exec& ex, ConstTensor decision) override {
    for (const UpdateRange& r : buffers_.runs()) {
      ops::adamw(ex, {.param = buffers_.param(r),
                      .master = buffers_.master(r),
                      .m = UpdateBuffers::state(first_, r),
                      .v = UpdateBuffers::state(second_, r),
                      .grad = buffers_.grad(r),
                      .decision = decision,
                      .beta1 = config_.beta1,
                      .beta2 = config_.beta2,
                      .eps = config_.eps,
                      .decays = r.spec().decays(),
                      .rounding_key = rounding_key_,
                      .first = r.begin});
    }
  }

  std::vector<OptimizerState> states() const override {
    return {{"adam.m", first_}, {"adam.v", second_}};
  }

 private:
  OptimConfig config_;
  UpdateBuffers& buffers_;
  uint64_t rounding_key_;
  Tensor first_, second_;  // moments
};

}  // namespace

std::unique_ptr<UpdateMethod> make_adamw(const OptimConfig& config, UpdateBuffers& buffers,
                                         uint64_t seed) {
  return std::make_unique<AdamW>(config, buffers, seed);
}

}  // namespace bev
