#include "optim/optimizer.h"

#include "base/philox.h"
#include "ops/elementwise.h"
#include "ops/update.h"

namespace bev {

namespace {

class AdamW final : public Optimizer {
 public:
  AdamW(const OptimConfig& config, ParamStore& params, const GradBuffer& grads, uint64_t seed)
      : Optimizer(params, grads),
        config_(config),
        rounding_key_(mix_key(seed, "moments")),
        first_(make_state(config.first_moment, "optimizer")),
        second_(make_state(config.second_moment, "optimizer")) {}

  void step(Exec& ex, ConstTensor decision) override {
    for (const Range& r : ranges()) {
      ops::adamw(ex, {.param = param_range(r),
                      .master = master_range(r),
                      .m = range_of(first_, r),
                      .v = range_of(second_, r),
                      .grad = grad_range(r),
                      .decision = decision,
                      .beta1 = config_.beta1,
                      .beta2 = config_.beta2,
                      .eps = config_.eps,
                      .decays = r.decay,
                      .rounding_key = rounding_key_,
                      .first = r.begin});
    }
  }

 private:
  OptimConfig config_;
  uint64_t rounding_key_;
  Tensor first_, second_;  // moments
};

class Sgd final : public Optimizer {
 public:
  Sgd(const OptimConfig& config, ParamStore& params, const GradBuffer& grads)
      : Optimizer(params, grads),
        momentum_(config.momentum),
        buffer_(make_state(StatePrecision::F32, "optimizer")) {}

  void step(Exec& ex, ConstTensor decision) override {
    for (const Range& r : ranges()) {
      ops::sgd(ex, {.param = param_range(r),
                    .master = master_range(r),
                    .buffer = range_of(buffer_, r),
                    .grad = grad_range(r),
                    .decision = decision,
                    .momentum = momentum_,
                    .decays = r.decay});
    }
  }

 private:
  double momentum_;
  Tensor buffer_;
};

}  // namespace

Optimizer::Optimizer(ParamStore& params, const GradBuffer& grads)
    : params_(params), grads_(grads), values_(params.flat_values()) {
  for (const FlatPlace& place : params.flat()) {
    const bool decay = place.param->spec.decay;
    const DType grad = grads.dtype_of(*place.param);
    if (!ranges_.empty() && ranges_.back().decay == decay && ranges_.back().grad == grad) {
      ranges_.back().count += place.count;
    } else {
      ranges_.push_back({place.begin, place.count, decay, grad});
    }
  }
  if (params.dtype() != accumulation_of(params.dtype())) {
    master_ = make_state(StatePrecision::F32, "master weights");
  }
}

Tensor Optimizer::make_state(StatePrecision precision, const char* purpose) {
  const DType dtype =
      precision == StatePrecision::Bf16 ? DType::bf16 : accumulation_of(params_.dtype());
  const size_t bytes = static_cast<size_t>(params_.flat_elements()) * size_of(dtype);
  buffers_.emplace_back(params_.device(), bytes, purpose);
  return tensor_over(buffers_.back().data(), dtype, {params_.flat_elements()});
}

Tensor Optimizer::range_of(const Tensor& flat, const Range& r) {
  return slice(flat, 0, r.begin, r.count);
}

Tensor Optimizer::param_range(const Range& r) const { return range_of(values_, r); }

Tensor Optimizer::master_range(const Range& r) const {
  return master_.present() ? range_of(master_, r) : Tensor{};
}

ConstTensor Optimizer::grad_range(const Range& r) const { return grads_.range(r.begin, r.count); }

void Optimizer::refresh_master(Exec& ex) {
  if (master_.present()) ops::copy(ex, {.in = values_, .out = master_});
}

std::unique_ptr<Optimizer> make_optimizer(const OptimConfig& config, ParamStore& params,
                                          const GradBuffer& grads, uint64_t seed) {
  if (config.kind == OptimizerKind::Sgd) return std::make_unique<Sgd>(config, params, grads);
  return std::make_unique<AdamW>(config, params, grads, seed);
}

}  // namespace bev
