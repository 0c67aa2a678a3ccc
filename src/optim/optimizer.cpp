#include "optim/optimizer.h"

#include <algorithm>

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
                      .m = state_range(first_, r),
                      .v = state_range(second_, r),
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
  std::vector<State> own_states() const override {
    return {{"adam.m", first_}, {"adam.v", second_}};
  }

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
                    .buffer = state_range(buffer_, r),
                    .grad = grad_range(r),
                    .decision = decision,
                    .momentum = momentum_,
                    .decays = r.decay});
    }
  }

 private:
  std::vector<State> own_states() const override { return {{"sgd.momentum", buffer_}}; }

  double momentum_;
  Tensor buffer_;
};

}  // namespace

Optimizer::Optimizer(ParamStore& params, const GradBuffer& grads) : params_(params), grads_(grads) {
  for (const FlatSection& section : params.sections()) {
    const FlatRange here = params.layout().zero > 0 ? section.shard() : FlatRange(section);
    const int64_t last = here.begin + here.count;
    for (const FlatParam& place : params.flat()) {
      const int64_t begin = std::max(place.begin, here.begin);
      const int64_t end = std::min(place.begin + place.count, last);
      if (begin >= end) continue;
      const bool decay = place.param->spec.decays();
      const DType grad = grads.dtype_of(*place.param);
      if (!ranges_.empty() && ranges_.back().begin + ranges_.back().count == begin &&
          ranges_.back().decay == decay && ranges_.back().grad == grad) {
        ranges_.back().count += end - begin;
      } else {
        ranges_.push_back({begin, end - begin, elements_, decay, grad});
      }
      elements_ += end - begin;
    }
  }
  if (params.dtype() != accumulation_of(params.dtype())) {
    master_ = make_state(StatePrecision::F32, "master weights");
  }
}

Tensor Optimizer::make_state(StatePrecision precision, const char* purpose) {
  const DType dtype =
      precision == StatePrecision::Bf16 ? DType::bf16 : accumulation_of(params_.dtype());
  buffers_.emplace_back(params_.device(), static_cast<size_t>(elements_) * size_of(dtype), purpose);
  return tensor_over(buffers_.back().data(), dtype, {elements_});
}

Tensor Optimizer::state_range(const Tensor& state, const Range& r) {
  return slice(state, 0, r.state, r.count);
}

Tensor Optimizer::param_range(const Range& r) const {
  return params_.value_range(r.begin, r.count);
}

Tensor Optimizer::master_range(const Range& r) const {
  return master_.present() ? state_range(master_, r) : Tensor{};
}

ConstTensor Optimizer::grad_range(const Range& r) const { return grads_.range(r.begin, r.count); }

std::vector<Optimizer::State> Optimizer::states() const {
  std::vector<State> all = own_states();
  if (master_.present()) all.insert(all.begin(), {"master", master_});
  return all;
}

void Optimizer::refresh_master(Exec& ex) {
  if (!master_.present()) return;
  for (const Range& r : ranges_) ops::copy(ex, {.in = param_range(r), .out = master_range(r)});
}

std::unique_ptr<Optimizer> make_optimizer(const OptimConfig& config, ParamStore& params,
                                          const GradBuffer& grads, uint64_t seed) {
  if (config.kind == OptimizerKind::Sgd) return std::make_unique<Sgd>(config, params, grads);
  return std::make_unique<AdamW>(config, params, grads, seed);
}

}  // namespace bev
